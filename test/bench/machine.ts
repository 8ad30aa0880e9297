/** Describes the machine on which the bench ran: a figure means nothing without it. */
import { readFileSync } from 'node:fs'
import { cpus, loadavg, totalmem } from 'node:os'

export interface Machine {
  cpu: string
  cores: number
  memoryBytes: number
  node: string
  /** The version of the package that brings it. */
  chdb: string
  /** The load average of the last minute, before the bench started. */
  loadBefore: number
}

const chdbPackage = new URL('../../node_modules/chdb/package.json', import.meta.url)

export function describeMachine(): Machine {
  const cores = cpus()
  return {
    cpu: cores[0]?.model ?? 'unknown',
    cores: cores.length,
    memoryBytes: totalmem(),
    node: process.version,
    chdb: JSON.parse(readFileSync(chdbPackage, 'utf8')).version,
    loadBefore: loadavg()[0] ?? 0,
  }
}

/** One line, without the load: for a table, which is written when the run is over. */
export function machineLine({ cpu, cores, memoryBytes, node, chdb }: Machine): string {
  const memory = `${(memoryBytes / 2 ** 30).toFixed(1)} GiB`
  return `${cpu}, ${cores} cores, ${memory}; Node ${node}, ClickHouse of chdb ${chdb}`
}

export function machineText(machine: Machine): string {
  const { cores, loadBefore } = machine
  const load = `load before: ${loadBefore.toFixed(2)}`
  const isBusy = loadBefore > cores / 2
  const warning = isBusy
    ? '\nOther work is running: rates and times are worse than they would be without it.'
    : ''
  return `${machineLine(machine)}; ${load}${warning}\n`
}
