import { setTimeout as pause } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'

interface Closable {
  close(): unknown
}

/** Notes that a part has to be closed, and returns it. */
export type Open = <Part extends Closable | undefined>(part: Part) => Part

/** Runs the work, and then closes what it opened, the last one first, whether it succeeded or failed. */
export async function closing<Result>(work: (open: Open) => Promise<Result>): Promise<Result> {
  const { open, close } = createParts()
  try {
    return await work(open)
  } finally {
    await close()
  }
}

/** Runs the work, which opens parts and gives back what is made of them. `close` closes the parts, as does a failure of the work. */
export async function opened<Result extends object>(
  work: (open: Open) => Promise<Result>,
): Promise<Result & { close(): Promise<void> }> {
  const { open, close } = createParts()
  try {
    return { ...(await work(open)), close }
  } catch (error) {
    await close()
    throw error
  }
}

function createParts(): { open: Open; close(): Promise<void> } {
  const parts: (Closable | undefined)[] = []
  return {
    open(part) {
      parts.push(part)
      return part
    },
    // Closes each part, also after one that could not be closed, and then throws the first failure. A second call finds nothing to close.
    async close() {
      const failures: unknown[] = []
      for (const part of parts.splice(0).reverse()) {
        try {
          await part?.close()
        } catch (error) {
          failures.push(error)
        }
      }
      if (failures.length > 0) throw failures[0]
    },
  }
}

/** Time in which each answer is the last one of its connection. */
const lastAnswersMs = 100
const cutMs = 1_000
const cutMsMax = 10_000

/**
 * Closes a server. Its connections are asked to end first: Node cuts those that are idle, and a request that was on its way, or not read yet,
 * would have no answer. After a second its connections are cut, or after ten if `isBusy` says that a request runs until then. Otherwise one
 * client that never ends its request, or sends none, would hold up the whole process.
 */
export async function closeServer(server: FastifyInstance, isBusy = () => false): Promise<void> {
  server.server.prependListener('request', (_request, response) => {
    response.shouldKeepAlive = false
  })
  await pause(lastAnswersMs)
  const until = performance.now() + cutMsMax
  const cut = setInterval(() => {
    if (!isBusy() || performance.now() >= until) server.server.closeAllConnections()
  }, cutMs)
  try {
    await server.close()
  } finally {
    clearInterval(cut)
  }
}
