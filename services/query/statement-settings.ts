/** Settings that several statements have. Pure. */

// With FINAL, ClickHouse reads all columns before it filters by the sorting key, unless this setting is on.
export const readByKey = 'optimize_move_to_prewhere_if_final = 1'

// A few rows are read sooner by one thread than they are shared among several. The buffers are as small as what is read.
export const fewRows = 'max_threads = 1, max_read_buffer_size = 65536'

// The caller stops waiting by its signal. This setting also stops the work in ClickHouse, which nothing would read.
export function timeBound(msMax: number): string {
  return `max_execution_time = ${Math.ceil(msMax / 1000)}`
}
