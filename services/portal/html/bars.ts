/**
 * Bars by time, as plain SVG. Sizes are attributes and colours are classes, because the page's policy
 * allows no inline style. The picture has a title and a description for people who do not see it. Everything is escaped.
 */
import { type Html, html } from './html.ts'

export interface Frame {
  /** Unique in the page. */
  id: string
  title: string
  /** What the picture shows, in one or two sentences. */
  description: string
}

/** A bar of parts that stand on each other. Values below 0 go down from the axis. */
export interface Bar {
  /** Below the bar. Empty: none. */
  label: string
  /** What the mouse shows: everything of the bar. */
  title: string
  /** `kind`: a class of the stylesheet that has a colour. */
  parts: readonly { kind: string; value: number }[]
}

// One unit is a pixel on a wide screen and half a pixel on a phone, where the style makes the text larger: there is room for it.
const width = 720
const height = 260
const margin = { left: 90, right: 8, top: 14, bottom: 40 } as const
const barShare = 0.8
const labelShareMin = 0.15
/** A value above zero is never thinner than this: one refused request among thousands can be seen. */
const barMin = 1.5

/** Upright bars in the order of time. */
export function timeBars(
  { id, title, description }: Frame,
  bars: readonly Bar[],
  scaleText: (value: number) => string,
): Html {
  const sums = bars.map(({ parts }) => parts.reduce((sum, { value }) => sum + value, 0))
  const most = roundUp(Math.max(0, ...sums))
  const least = -roundUp(-Math.min(0, ...sums))
  const inner = height - margin.top - margin.bottom
  const y = (value: number): number => margin.top + ((most - value) / (most - least || 1)) * inner
  const step = (width - margin.left - margin.right) / Math.max(1, bars.length)
  // The lowest line stands only where its figure does not cover that of the axis.
  const lines = new Set([most, most / 2, 0, ...(-least > labelShareMin * (most - least) ? [least] : [])])

  function partsOf({ parts }: Bar, x: number): Html[] {
    let top = y(0)
    return parts.map(({ kind, value }) => {
      if (value === 0) return html``
      const length = Math.max(barMin, Math.abs(y(value) - y(0)))
      if (value > 0) top -= length
      return html`<rect class="${kind}" x="${fixed(x + (step * (1 - barShare)) / 2)}" y="${fixed(value < 0 ? y(0) : top)}" width="${fixed(step * barShare)}" height="${fixed(length)}"/>`
    })
  }

  // The first shape of each bar cannot be seen. With it the whole height shows the bar's title.
  return html`<svg class="bars" role="img" aria-labelledby="${id}-title" aria-describedby="${id}-desc" viewBox="0 0 ${width} ${height}">
<title id="${id}-title">${title}</title>
<desc id="${id}-desc">${description}</desc>
${[...lines].map(value => gridLine(y(value), scaleText(value)))}${bars.map((bar, index) => {
  const x = margin.left + index * step
  return html`<g><title>${bar.title}</title><rect fill="none" pointer-events="all" x="${fixed(x)}" y="${margin.top}" width="${fixed(step)}" height="${inner}"/>${partsOf(bar, x)}</g>${bar.label !== '' && html`<text text-anchor="middle" x="${fixed(x + step / 2)}" y="${height - 12}">${bar.label}</text>`}
`
})}</svg>`
}

function gridLine(y: number, text: string): Html {
  return html`<line class="axis" x1="${margin.left}" x2="${width - margin.right}" y1="${fixed(y)}" y2="${fixed(y)}"/><text text-anchor="end" x="${margin.left - 8}" y="${fixed(y + 5)}">${text}</text>
`
}

/** The next number that people like on a scale: 1, 2, 2.5 or 5 with zeros. */
function roundUp(value: number): number {
  if (value <= 0) return 0
  const power = 10 ** Math.floor(Math.log10(value))
  // The shares of a whole may add up to a little more than 100, by rounding.
  return ([1, 2, 2.5, 5].find(step => step * power >= value * (1 - Number.EPSILON * 8)) ?? 10) * power
}

function fixed(value: number): string {
  return String(Math.round(value * 100) / 100)
}
