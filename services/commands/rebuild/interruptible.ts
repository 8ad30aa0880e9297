const signals = ['SIGINT', 'SIGTERM'] as const

/**
 * Runs the work with a signal that aborts at the first interrupt of the process. A second interrupt ends the process
 * at once. For work that ends by itself; the work decides what an interrupt means.
 */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController()
  function onSignal(): void {
    uninstall()
    stop.abort()
  }
  function uninstall(): void {
    for (const name of signals) process.off(name, onSignal)
  }
  for (const name of signals) process.on(name, onSignal)
  try {
    return await work(stop.signal)
  } finally {
    uninstall()
  }
}
