/** Selects the slots of the list index that match a query, in the order of the query. */
import type { Sort } from '../../../contracts/api/parameters.ts'
import type { ListQuery } from '../views/statements.ts'
import type { Dictionary, ListColumns } from './list-columns.ts'
import { marked, type SlotOrder } from './list-order.ts'

/** The parts of a list index that a selection reads. */
export interface SelectionSource {
  /** The columns at present: growing replaces them. */
  columns: () => ListColumns
  statuses: Dictionary
  categories: Dictionary
  orders: Record<'launch' | 'end' | 'pledged' | 'backers' | 'updated', SlotOrder>
}

/** Called between parts of a long selection. It may let other work run. */
export type Pause = () => Promise<void>

// Looking at so many slots takes a few milliseconds at most.
const slotsAtOnce = 16_384

/**
 * The slots that match the query, in its order. `now`: ClickHouse's clock, Unix ms.
 *
 * The index may change during a pause. The order and the slots are those of the start. A campaign that changes meanwhile
 * may match as it was or as it is: both are as new as the start.
 */
export async function selectSlots(
  source: SelectionSource,
  query: ListQuery,
  now: number,
  pause: Pause,
): Promise<Uint32Array> {
  const found = await matching(source, query, pause)
  return query.sort === 'ending_soon' ? endingSoon(source, found, now, pause) : found
}

async function matching(source: SelectionSource, query: ListQuery, pause: Pause): Promise<Uint32Array> {
  const { statuses, categories } = source
  const status = query.status === null ? undefined : statuses.find(query.status)
  const category = query.category === null ? undefined : categories.find(query.category)
  if (status === null || category === null) return new Uint32Array()
  const found = await changedSince(source, query, pause)
  if (status === undefined && category === undefined) return found
  return markedInParts(
    found,
    slot =>
      (status === undefined || source.columns().status[slot] === status) &&
      (category === undefined || source.columns().category[slot] === category),
    pause,
  )
}

/** Like `marked`, with pauses. */
async function markedInParts(
  slots: Uint32Array,
  isMarked: (slot: number) => boolean,
  pause: Pause,
): Promise<Uint32Array> {
  if (slots.length <= slotsAtOnce) return marked(slots, isMarked)
  const found = new Uint32Array(slots.length)
  let count = 0
  for (let from = 0; from < slots.length; from += slotsAtOnce) {
    await pause()
    const part = marked(slots.subarray(from, from + slotsAtOnce), isMarked)
    found.set(part, count)
    count += part.length
  }
  return count === slots.length ? slots : found.slice(0, count)
}

const baseOrders = {
  newest: 'launch',
  ending_soon: 'end',
  most_funded: 'pledged',
  most_backed: 'backers',
} as const satisfies Record<Sort, keyof SelectionSource['orders']>

// Below this share of all campaigns, sorting the changed ones is faster than filtering a whole order.
const fewShare = 1 / 8

/** The slots that match `updatedSince`, in the base order of the sort. */
async function changedSince(
  { columns, orders }: SelectionSource,
  { sort, updatedSince }: ListQuery,
  pause: Pause,
): Promise<Uint32Array> {
  const base = orders[baseOrders[sort]]
  if (updatedSince === null) return base.slots()
  const isChanged = (slot: number) => (columns().updated[slot] ?? 0) >= updatedSince
  const byUpdate = orders.updated.slots()
  const changed = countWhile(byUpdate, isChanged)
  if (changed === byUpdate.length) return base.slots()
  if (changed < byUpdate.length * fewShare) return base.arrange(byUpdate.subarray(0, changed))
  return markedInParts(base.slots(), isChanged, pause)
}

/** Orders slots that are sorted by end: running campaigns from the earliest end, then the others from the latest end. */
async function endingSoon(
  { columns, statuses }: SelectionSource,
  byEnd: Uint32Array,
  now: number,
  pause: Pause,
): Promise<Uint32Array> {
  const live = statuses.find('LIVE')
  // Decided once for each slot: a campaign that changes during a pause is in the list once all the same.
  const isRunning = new Uint8Array(byEnd.length)
  const ordered = new Uint32Array(byEnd.length)
  let count = 0
  for (let at = 0; at < byEnd.length; at++) {
    if (at % slotsAtOnce === slotsAtOnce - 1) await pause()
    const slot = byEnd[at] ?? 0
    if (columns().status[slot] !== live || (columns().end[slot] ?? 0) <= now) continue
    isRunning[at] = 1
    ordered[count++] = slot
  }
  for (let last = byEnd.length, parts = 1; last > 0; ) {
    if (byEnd.length - last > parts * slotsAtOnce) {
      parts++
      await pause()
    }
    // Campaigns with the same end stay in the order of their ids.
    const { end } = columns()
    const sameEnd = end[byEnd[last - 1] ?? 0]
    let first = last - 1
    while (first > 0 && end[byEnd[first - 1] ?? 0] === sameEnd) first--
    for (let at = first; at < last; at++) if (isRunning[at] !== 1) ordered[count++] = byEnd[at] ?? 0
    last = first
  }
  return ordered
}

/** How many slots at the start fulfil the condition. All that fulfil it must come before all others. */
function countWhile(slots: Uint32Array, fulfils: (slot: number) => boolean): number {
  let [low, high] = [0, slots.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (fulfils(slots[middle] ?? 0)) low = middle + 1
    else high = middle
  }
  return low
}
