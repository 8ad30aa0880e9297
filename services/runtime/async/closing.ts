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
    // A second call finds nothing to close.
    async close() {
      for (const part of parts.splice(0).reverse()) await part?.close()
    },
  }
}

/**
 * Closes a server. Running requests may finish within the grace, then their connections are cut. Otherwise one client
 * that never ends its request would hold up the whole process.
 */
export async function closeServer(server: FastifyInstance, graceMs = 1_000): Promise<void> {
  const cut = setTimeout(() => server.server.closeAllConnections(), graceMs)
  try {
    await server.close()
  } finally {
    clearTimeout(cut)
  }
}
