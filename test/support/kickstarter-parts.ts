/** Parts of the Kickstarter table's events: slices to append one after the other, and later changes that leave the truth as it is. */
import { closeSync, createReadStream, fstatSync, openSync, readSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'

const lineBytesMax = 1 << 20

/** The lines of a file in parts of about the same size. Each may be read once. */
export function slicesOf(file: string, count: number): Readable[] {
  const ends = Array.from({ length: count }, (_, index) => lineEndFrom(file, (index + 1) / count))
  return ends.map((end, index) => createReadStream(file, { start: ends[index - 1] ?? 0, end: end - 1 }))
}

/** The position after the line that is at this share of the file. */
function lineEndFrom(file: string, share: number): number {
  const opened = openSync(file, 'r')
  try {
    const { size } = fstatSync(opened)
    const from = Math.floor(size * share)
    const bytes = Buffer.alloc(lineBytesMax)
    const end = bytes.subarray(0, readSync(opened, bytes, 0, bytes.length, from)).indexOf('\n')
    return end < 0 ? size : from + end + 1
  } finally {
    closeSync(opened)
  }
}

interface CampaignLine {
  type: 'campaign'
  data: { campaign_id: string; version: number; subtitle: string }
}

/** Changes of campaigns that the truth does not mention. */
export interface Amendments {
  /** The campaigns that are changed. */
  ids: readonly string[]
  /** The events of the next change, NDJSON: each of the campaigns gets a new version with another subtitle. */
  next(): string
}

/** Changes of these campaigns, each made from the campaign's latest state in the file. */
export async function amendmentsOf(file: string, ids: readonly string[]): Promise<Amendments> {
  const latest = new Map<string, CampaignLine>()
  const wanted = new Set(ids)
  for await (const line of createInterface({ input: createReadStream(file) })) {
    if (!line.startsWith('{"type":"campaign"')) continue
    const event = JSON.parse(line) as CampaignLine
    const { campaign_id, version } = event.data
    if (wanted.has(campaign_id) && version > (latest.get(campaign_id)?.data.version ?? 0)) {
      latest.set(campaign_id, event)
    }
  }
  let rounds = 0
  return {
    ids,
    next() {
      rounds++
      const changed = [...latest.values()].map(({ type, data }) => ({
        type,
        data: { ...data, version: data.version + rounds, subtitle: `change ${rounds}` },
      }))
      return changed.map(event => `${JSON.stringify(event)}\n`).join('')
    },
  }
}
