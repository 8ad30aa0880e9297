/** How the pages under /access write moments, days and counts. All times are UTC: a page that is read anywhere says so. */
import { type Html, html } from './html.ts'

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'] as const
const counts = new Intl.NumberFormat('en')

/** `22 Nov 2026, 14:05 UTC`, readable by programs too. */
export function moment(ms: number): Html {
  const iso = new Date(ms).toISOString()
  return html`<time datetime="${iso}">${dayText(iso)}, ${iso.slice(11, 16)} UTC</time>`
}

/** A day: `22 Nov 2026`, readable by programs too. */
export function date(ms: number): Html {
  const day = new Date(ms).toISOString().slice(0, 10)
  return html`<time datetime="${day}">${dayText(day)}</time>`
}

/** `22 Nov 2026` for `2026-11-22`. */
export function dayText(day: string): string {
  return `${Number(day.slice(8, 10))} ${months[Number(day.slice(5, 7)) - 1]} ${day.slice(0, 4)}`
}

/** `12,345` */
export function count(value: number): string {
  return counts.format(value)
}

/** `1 request`, `12,345 requests` */
export function countOf(value: number, one: string): string {
  return `${count(value)} ${one}${value === 1 ? '' : 's'}`
}
