/**
 * Pictures as plain SVG: bars by time, and bars by name. Sizes are attributes and colours are classes, because the page's policy
 * allows no inline style. Each picture has a title and a description for people who do not see it. Everything is escaped.
 */
import { type Html, html } from '../html/html.ts'

export interface Frame {
  /** Unique in the page. */
  id: string
  title: string
  /** What the picture shows, in one or two sentences. */
  description: string
}

export interface Bar {
  /** Below or beside the bar. Empty: none. */
  label: string
  value: number
  /** The value in words. */
  text: string
  /** What the mouse shows: everything of the bar. */
  title: string
}

const width = 720
const timeHeight = 240
const margin = { left: 64, right: 8, top: 12, bottom: 28 } as const
const rowHeight = 30
const nameWidth = 230
const valueWidth = 110
const nameCharactersMax = 32
const barShare = 0.8
/** A value above zero is never thinner than this. */
const barMin = 1.5

/** Upright bars in the order of time. Values below 0 go down from the axis. */
export function timeBars(frame: Frame, bars: readonly Bar[], scaleText: (value: number) => string): Html {
  const most = Math.max(0, ...bars.map(({ value }) => value))
  const least = Math.min(0, ...bars.map(({ value }) => value))
  const span = most - least || 1
  const inner = timeHeight - margin.top - margin.bottom
  const y = (value: number): number => margin.top + ((most - value) / span) * inner
  const step = (width - margin.left - margin.right) / Math.max(1, bars.length)
  const lines = [...new Set([most, (most + Math.max(0, least)) / 2, 0, least])]
  return svg(
    frame,
    timeHeight,
    html`${lines.map(
      value =>
        html`<line class="axis" x1="${margin.left}" x2="${width - margin.right}" y1="${fixed(y(value))}" y2="${fixed(y(value))}"/><text class="end" x="${margin.left - 8}" y="${fixed(y(value) + 4)}">${scaleText(value)}</text>
`,
    )}${bars.map((bar, index) => {
      const x = margin.left + index * step
      const top = Math.min(y(bar.value), y(0) - (bar.value > 0 ? barMin : 0))
      const height = bar.value < 0 ? Math.max(barMin, y(bar.value) - y(0)) : y(0) - top
      return html`<g><title>${bar.title}</title><rect fill="none" pointer-events="all" x="${fixed(x)}" y="${margin.top}" width="${fixed(step)}" height="${inner}"/><rect class="${bar.value < 0 ? 'too-many' : 'ok'}" x="${fixed(x + (step * (1 - barShare)) / 2)}" y="${fixed(bar.value < 0 ? y(0) : top)}" width="${fixed(step * barShare)}" height="${fixed(height)}"/></g>${bar.label !== '' && html`<text class="middle" x="${fixed(x + step / 2)}" y="${timeHeight - 8}">${bar.label}</text>`}
`
    })}`,
  )
}

/** Lying bars, one below the other, each with its name before it and its value behind it. `most` is the whole length. */
export function nameBars(frame: Frame, bars: readonly Bar[], most: number): Html {
  const room = width - nameWidth - valueWidth
  return svg(
    frame,
    Math.max(1, bars.length) * rowHeight,
    html`${bars.map((bar, index) => {
      const top = index * rowHeight
      const length = Math.max(bar.value > 0 ? barMin : 0, (bar.value / (most || 1)) * room)
      return html`<g><title>${bar.title}</title><rect fill="none" pointer-events="all" x="0" y="${top}" width="${width}" height="${rowHeight}"/><text class="end" x="${nameWidth - 10}" y="${top + 20}">${shortened(bar.label)}</text><rect class="track" x="${nameWidth}" y="${top + 5}" width="${room}" height="${rowHeight - 10}"/><rect class="ok" x="${nameWidth}" y="${top + 5}" width="${fixed(length)}" height="${rowHeight - 10}"/><text x="${nameWidth + room + 10}" y="${top + 20}">${bar.text}</text></g>
`
    })}`,
  )
}

function svg({ id, title, description }: Frame, height: number, content: Html): Html {
  return html`<svg class="bars picture" role="img" aria-labelledby="${id}-title" aria-describedby="${id}-desc" viewBox="0 0 ${width} ${height}">
<title id="${id}-title">${title}</title>
<desc id="${id}-desc">${description}</desc>
${content}</svg>`
}

function shortened(text: string): string {
  const characters = [...text]
  return characters.length <= nameCharactersMax
    ? text
    : `${characters.slice(0, nameCharactersMax - 1).join('')}…`
}

function fixed(value: number): string {
  return String(Math.round(value * 100) / 100)
}
