/** How busy the machine was, for a report: a bench of several processes is the first to suffer from others. */
import { loadavg } from 'node:os'

export function loadNote(): string {
  const [oneMinute = 0, fiveMinutes = 0] = loadavg()
  return `Load average at the end: ${oneMinute.toFixed(1)} in the last minute, ${fiveMinutes.toFixed(1)} in five.`
}
