// A runner for Node.js: counts the messages of a conversation in host state, and streams its answer word by word.
'use strict'

const { Host, HostError } = require('./host')

const LONGEST = 10000

async function main () {
  const host = new Host()
  const run = await host.run
  const { config, input } = run.context
  const text = input.text ?? 'nothing'
  const place = { scope: 'conversation', key: 'example.visits' }
  try {
    const { value } = await host.call('state_get', place)
    const visits = (Number.isInteger(value) ? value : 0) + 1
    const saved = host.call('state_set', { ...place, value: visits })
    const answer = `${config.greeting ?? 'Hello'}, you said: ${text.length > LONGEST ? 'a great deal' : text}. ` +
      `Message ${visits} of this conversation.`
    for (const content of answer.split(/(?<= )/)) {
      if (host.cancelled.aborted) return await fail(host, run, 'cancelled', 'the run was cancelled')
      await host.result(run, 'message.delta', { chunk: { role: 'assistant', content } })
    }
    await saved
  } catch (error) {
    if (!(error instanceof HostError)) throw error
    // A cancel ends the calls that are under way.
    const code = host.cancelled.aborted ? 'cancelled' : 'visits.no_state'
    return await fail(host, run, code, error.message)
  }
  await host.result(run, 'run.completed', { finish_reason: 'stop' })
}

async function fail (host, run, code, error) {
  await host.result(run, 'run.failed', { code, error })
}

main().then(() => process.exit(0), (error) => {
  console.error(error)
  process.exit(1)
})
