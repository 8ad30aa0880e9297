/** A value that is loaded when it is asked for, and kept for a while. Calls that come during a load share it, so loads do not pile up. */
import type { Runtime } from '../runtime.ts'

/**
 * `ms`: for how long a value is given without a new load. It may depend on the value. Default: not at all. Rejects with the error of the load.
 */
export function kept<Value>(
  load: () => Promise<Value>,
  { ms = 0 }: { ms?: number | ((value: Value) => number) } = {},
  { monotonicMs }: Pick<Runtime, 'monotonicMs'> = { monotonicMs: () => performance.now() },
): () => Promise<Value> {
  let last: { value: Value; at: number } | undefined
  const msOf = (value: Value) => (typeof ms === 'number' ? ms : ms(value))
  let loading: Promise<Value> | undefined

  async function reload(): Promise<Value> {
    // A value is as old as the beginning of its load.
    const at = monotonicMs()
    try {
      const value = await load()
      last = { value, at }
      return value
    } finally {
      loading = undefined
    }
  }

  return () => {
    if (last && monotonicMs() - last.at < msOf(last.value)) return Promise.resolve(last.value)
    loading ??= reload()
    return loading
  }
}
