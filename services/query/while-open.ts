import type { FastifyInstance } from 'fastify'

/** Runs a loop from the start of the app to its close, which waits for it. `started`: what the start waits for. */
export function whileOpen(
  app: FastifyInstance,
  run: (signal: AbortSignal) => Promise<void>,
  started?: () => Promise<void>,
): void {
  const closing = new AbortController()
  let running = Promise.resolve()
  app.addHook('onReady', async () => {
    running = run(closing.signal)
    await started?.()
  })
  app.addHook('onClose', () => {
    closing.abort()
    return running
  })
}
