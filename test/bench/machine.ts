/** Describes the machine on which the bench ran: a figure means nothing without it. */
import { cpus, loadavg, totalmem } from 'node:os'

export interface Machine {
  cpu: string
  cores: number
  memoryBytes: number
  node: string
  clickhouse: string
  /** The load average of the last minute, before the bench started. */
  loadBefore: number
}

export function describeMachine(clickhouse: string): Machine {
  const cores = cpus()
  return {
    cpu: cores[0]?.model ?? 'unknown',
    cores: cores.length,
    memoryBytes: totalmem(),
    node: process.version,
    clickhouse,
    loadBefore: loadavg()[0] ?? 0,
  }
}

export function machineText({ cpu, cores, memoryBytes, node, clickhouse, loadBefore }: Machine): string {
  const memory = `${(memoryBytes / 2 ** 30).toFixed(1)} GiB`
  const load = `load before: ${loadBefore.toFixed(2)}`
  const isBusy = loadBefore > cores / 2
  const warning = isBusy
    ? '\nOther work is running: rates and times are worse than they would be without it.'
    : ''
  return `${cpu}, ${cores} cores, ${memory}; Node ${node}, ClickHouse ${clickhouse}; ${load}${warning}\n`
}
