#!/bin/sh
# A runner without any library: it counts the messages of a conversation in host state, and answers.
# Every JSON string that it passes on stays as the host wrote it, so there is nothing to escape.
set -eu

# field LINE PATH: one scalar of a message.
field() {
    printf '%s\n' "$1" | awk -v path="$2" -f field.awk
}

# result TYPE DATA: yield something, numbered from 1.
sequence=0
result() {
    sequence=$((sequence + 1))
    printf '{"type":"result","result":{"run_id":%s,"sequence":%s,"type":"%s","data":%s}}\n' \
        "$run_id" "$sequence" "$1" "$2"
}

# call METHOD PARAMS: ask the host and wait; the answer is in $answer.
calls=0
call() {
    calls=$((calls + 1))
    printf '{"type":"call","id":%s,"method":"%s","params":%s}\n' "$calls" "$1" "$2"
    while IFS= read -r answer; do
        case $(field "$answer" type) in
        '"answer"')
            if [ "$(field "$answer" id)" = "$calls" ]; then return; fi
            ;;
        '"cancel"')
            result run.failed '{"code":"cancelled","error":"the run was cancelled"}'
            exit 0
            ;;
        esac
    done
    echo 'the host has closed its end' >&2
    exit 1
}

# inner STRING: a JSON string without its quotes.
inner() {
    value=${1#\"}
    printf '%s' "${value%\"}"
}

IFS= read -r run
run_id=$(field "$run" run_id)
text=$(field "$run" context.input.text)
greeting=$(field "$run" context.config.greeting)

call state_get '{"scope":"conversation","key":"example.visits"}'
refusal=$(field "$answer" error.code)
if [ -n "$refusal" ]; then
    result run.failed "{\"code\":\"visits.no_state\",\"error\":\"the host refused: $(inner "$refusal")\"}"
    exit 0
fi
visits=$(field "$answer" result.value)
case $visits in
'' | *[!0-9]*) visits=0 ;;
esac
visits=$((visits + 1))
call state_set "{\"scope\":\"conversation\",\"key\":\"example.visits\",\"value\":$visits}"

said=$(inner "$text")
[ "$text" != null ] || said=nothing
[ ${#text} -le 10000 ] || said='a great deal'
content="$(inner "${greeting:-\"Hello\"}"), you said: $said. Message $visits of this conversation."
result message.completed "{\"message\":{\"role\":\"assistant\",\"content\":\"$content\"}}"
result run.completed '{"finish_reason":"stop"}'
