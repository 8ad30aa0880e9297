/** The machine's load, for a report: other work distorts a bench of several processes. */
import { loadavg } from 'node:os'

export function loadNote(): string {
  const [oneMinute = 0, fiveMinutes = 0] = loadavg()
  return `Load average at the end: ${oneMinute.toFixed(1)} in the last minute, ${fiveMinutes.toFixed(1)} in five.`
}
