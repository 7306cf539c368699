# Prints one scalar of a JSON object as it stands there, strings with their quotes and escapes:
#
#     awk -v path=context.input.text -f field.awk
#
# Elements of lists are counted from 0. Nothing is printed when there is no such scalar.

BEGIN { STRING = "^\"([^\"\\\\]|\\\\.)*\""; OTHER = "^[^][{},: \t\"]+" }

{ text = $0; read_value(""); exit }

function read_value(here,    first, token, place) {
    skip()
    first = substr(text, 1, 1)
    if (first == "{" || first == "[") {
        place = 0
        drop()
        while (substr(text, 1, 1) != "}" && substr(text, 1, 1) != "]") {
            if (first == "{") {
                token = take(STRING)
                token = substr(token, 2, length(token) - 2)
                skip()
                drop()
            } else {
                token = place++
            }
            read_value(here == "" ? token : here "." token)
            skip()
            if (substr(text, 1, 1) == ",") drop()
        }
        drop()
        return
    }
    token = take(first == "\"" ? STRING : OTHER)
    if (here == path) { print token; exit }
}

function skip() { sub(/^[ \t]+/, "", text) }

function drop() { text = substr(text, 2); skip() }

function take(pattern,    token) {
    if (!match(text, pattern)) exit 1
    token = substr(text, 1, RLENGTH)
    text = substr(text, RLENGTH + 1)
    return token
}
