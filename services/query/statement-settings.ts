/** Settings that several statements have. Pure. */

// A few rows are read sooner by one thread than they are shared among several. The buffers are as small as what is read.
export const fewRows = 'max_threads = 1, max_read_buffer_size = 65536'

// The caller stops waiting by its signal. This setting also stops the work in ClickHouse, which nothing would read.
export function timeBound(msMax: number): string {
  return `max_execution_time = ${Math.ceil(msMax / 1000)}`
}
