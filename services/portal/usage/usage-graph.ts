/**
 * The requests of a key as a bar graph: one bar a day, stacked by outcome. It is plain SVG with classes, because the page's
 * policy allows no inline style. The graph has a text for people who do not see it; the table beside it has every number.
 */
import { type Html, html } from '../html/html.ts'
import { countOf, dayText } from '../html/words.ts'
import type { KeyUsage } from './usage-reader.ts'
import { classOf, outcomes, requestsOf, totalOf } from './usage-table.ts'

type Day = KeyUsage['days'][number]

interface Size {
  width: number
  height: number
}

const large: Size = { width: 720, height: 150 }
const small: Size = { width: 150, height: 30 }
/** The part of a day's width that its bar takes. */
const barShare = 0.8
/** A count above zero is never thinner than this: one refused request among thousands can be seen. */
const segmentMin = 1.5
/** Room above the highest bar for segments that were made thicker. */
const headroom = outcomes.length * segmentMin

/** The graph of a key's page. */
export function usageGraph(days: readonly Day[]): Html {
  return graph(days, large, 'bars')
}

/** The graph of a row in the overview. */
export function smallUsageGraph(days: readonly Day[]): Html {
  return graph(days, small, 'bars small')
}

/** What the graph shows, in one sentence. */
export function usageText(days: readonly Day[]): string {
  const total = totalOf(days)
  const parts = outcomes
    .filter(({ outcome }) => total[outcome] > 0)
    .map(
      ({ outcome, name }) =>
        `${countOf(total[outcome], 'answer')} ${name === 'Other' ? 'with another status' : name}`,
    )
  const requests = `${countOf(requestsOf(total), 'request')} in the last ${days.length} days`
  return parts.length === 0 ? `${requests}.` : `${requests}: ${parts.join(', ')}.`
}

/** The scale of the graph in words: its first and last day, and its highest bar. */
export function usageScale(days: readonly Day[]): string {
  const [first, last] = [days.at(0), days.at(-1)]
  if (!first || !last) return ''
  const most = Math.max(...days.map(requestsOf))
  return `From ${dayText(first.day)} to ${dayText(last.day)}. The highest bar is ${countOf(most, 'request')} on one day.`
}

function graph(days: readonly Day[], size: Size, classes: string): Html {
  const most = Math.max(1, ...days.map(requestsOf))
  const dayWidth = size.width / Math.max(1, days.length)
  // The label is the name of the picture, and the title the same for the mouse. Readers of the page skip what is inside.
  return html`<svg class="${classes}" role="img" aria-label="${usageText(days)}" viewBox="0 0 ${size.width} ${size.height}">
<title>${usageText(days)}</title>
${days.map((day, index) => (size === large || requestsOf(day) > 0) && bar(day, index * dayWidth, dayWidth, most, size))}
<line class="axis" x1="0" x2="${size.width}" y1="${size.height}" y2="${size.height}"/>
</svg>`
}

function bar(day: Day, x: number, dayWidth: number, most: number, size: Size): Html {
  let bottom = size.height
  const segments = outcomes
    .filter(({ outcome }) => day[outcome] > 0)
    .map(({ outcome }) => {
      const height = Math.max(segmentMin, (day[outcome] / most) * (size.height - headroom))
      bottom -= height
      return html`<rect class="${classOf(outcome)}" x="${fixed(x)}" y="${fixed(bottom)}" width="${fixed(dayWidth * barShare)}" height="${fixed(height)}"/>`
    })
  // The first shape cannot be seen. With it the whole height of the day shows the day's title.
  return html`<g><title>${dayTitle(day)}</title><rect fill="none" pointer-events="all" x="${fixed(x)}" y="0" width="${fixed(dayWidth)}" height="${size.height}"/>${segments}</g>
`
}

function dayTitle(day: Day): string {
  const parts = outcomes
    .filter(({ outcome }) => day[outcome] > 0)
    .map(({ outcome, name }) => `${name}: ${day[outcome]}`)
  return `${dayText(day.day)}: ${countOf(requestsOf(day), 'request')}${parts.length > 0 ? ` (${parts.join(', ')})` : ''}`
}

function fixed(value: number): string {
  return String(Math.round(value * 100) / 100)
}
