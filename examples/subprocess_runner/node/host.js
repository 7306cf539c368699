// The host as a Node.js program sees it: lines of JSON on standard input and output.
'use strict'

const readline = require('node:readline')

class HostError extends Error {
  constructor ({ code, message, retryable, details }) {
    super(`${code}: ${message}`)
    Object.assign(this, { code, retryable, details })
  }
}

class Host {
  #lastId = 0
  #lastSequence = 0
  #open = new Map()
  #run

  // What the host started this program for; `cancelled` is an AbortSignal.
  constructor () {
    const cancelling = new AbortController()
    this.cancelled = cancelling.signal
    this.run = new Promise((resolve) => { this.#run = resolve })
    const lines = readline.createInterface({ input: process.stdin })
    lines.on('line', (line) => this.#take(JSON.parse(line), cancelling))
    // The host has gone, or wants nothing more.
    lines.on('close', () => cancelling.abort('closed'))
    process.on('SIGTERM', () => cancelling.abort('SIGTERM'))
  }

  // Yields a result; resolves when the host is ready for more.
  async result (run, type, data) {
    const sequence = ++this.#lastSequence
    await this.#write({ type: 'result', result: { run_id: run.run_id, type, data, sequence } })
  }

  // Calls the host; several calls may be under way at the same time.
  call (method, params) {
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      this.#open.set(id, { resolve, reject })
      this.#write({ type: 'call', id, method, params }).catch(reject)
    })
  }

  #take (message, cancelling) {
    if (message.type === 'run') this.#run(message)
    if (message.type === 'cancel') cancelling.abort(message.reason)
    if (message.type !== 'answer' || !this.#open.has(message.id)) return
    const { resolve, reject } = this.#open.get(message.id)
    this.#open.delete(message.id)
    if (message.error) reject(new HostError(message.error))
    else resolve(message.result)
  }

  async #write (message) {
    if (!process.stdout.write(JSON.stringify(message) + '\n')) {
      await new Promise((resolve) => process.stdout.once('drain', resolve))
    }
  }
}

module.exports = { Host, HostError }
