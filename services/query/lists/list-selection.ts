/**
 * Selects the slots of the list index that match a query, in the order of the query.
 *
 * If few campaigns have changed since the moment of the query, it looks at the latest changes alone. They are sorted once for all
 * queries until the next change. Otherwise it marks the slots that match, reading each column from its start to its end. Then it
 * reads the sort order and takes the marked slots. Both are several times faster than reading the columns in the sort order.
 */
import type { Sort } from '../../../contracts/api/parameters.ts'
import type { Dictionary, ListColumns } from './list-index.ts'
import type { Pause, SlotOrder } from './list-order.ts'
import type { ListQuery } from './list-statements.ts'

/** The parts of a list index that a selection reads. */
export interface SelectionSource {
  /** The columns at present: growing replaces them. */
  columns: () => ListColumns
  /** No slot from this one on was ever used. */
  slotsEnd: number
  statuses: Dictionary
  categories: Dictionary
  orders: Record<'launch' | 'end' | 'endDown' | 'pledged' | 'backers' | 'updated', SlotOrder>
}

/** The conditions of a query, in the numbers of the index. */
interface Filter {
  /** `anyValue` or a number of the dictionary. */
  status: number
  category: number
  /** Unix ms. */
  since: number
}

// Looking at so many slots takes about a millisecond.
const slotsAtOnce = 65_536
// So many slots are sorted by themselves within a millisecond. More are taken from the whole order.
const fewMax = 16_384
const anyValue = -1
const marked = 1
const running = 2

/**
 * The slots that match the query, in its order. `now`: ClickHouse's clock, Unix ms. Do not write to the array.
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
  const { statuses, categories, orders, columns } = source
  const status = query.status === null ? anyValue : statuses.find(query.status)
  const category = query.category === null ? anyValue : categories.find(query.category)
  if (status === null || category === null) return new Uint32Array()
  const byUpdate = orders.updated.slots()
  const since = query.updatedSince ?? Number.NEGATIVE_INFINITY
  const { updated } = columns()
  const changed = countWhile(byUpdate, slot => (updated[slot] ?? 0) >= since)
  const isAnyChange = changed === byUpdate.length
  const filter: Filter = { status, category, since }

  if (!isAnyChange && changed <= fewMax) return matchingOf(source, byUpdate, changed, filter, query.sort, now)
  const order = plannedOrder(source, query.sort, now)
  if (isAnyChange && status === anyValue && category === anyValue && order.runningFrom === undefined) {
    return order.slots
  }
  const marks = new Uint8Array(source.slotsEnd)
  const count = await mark(marks, source, filter, pause)
  return taken(marks, count, order, source, pause)
}

/** Marks the slots that match, and returns their number. */
async function mark(
  marks: Uint8Array,
  source: SelectionSource,
  filter: Filter,
  pause: Pause,
): Promise<number> {
  let count = 0
  for (let from = 0; from < source.slotsEnd; from += slotsAtOnce) {
    const to = Math.min(source.slotsEnd, from + slotsAtOnce)
    count += markPart(marks, from, to, source.columns(), filter)
    await pause()
  }
  return count
}

/** This loop takes most of the time of a list, so it reads no object within it. */
function markPart(marks: Uint8Array, from: number, to: number, columns: ListColumns, filter: Filter): number {
  const { status: statuses, category: categories, updated } = columns
  const { status, category, since } = filter
  let count = 0
  for (let slot = from; slot < to; slot++) {
    if (status !== anyValue && statuses[slot] !== status) continue
    if (category !== anyValue && categories[slot] !== category) continue
    if ((updated[slot] ?? 0) < since) continue
    marks[slot] = marked
    count++
  }
  return count
}

const sortedBy = {
  newest: 'launch',
  ending_soon: 'endDown',
  most_funded: 'pledged',
  most_backed: 'backers',
} as const satisfies Record<Sort, keyof SelectionSource['orders']>

/**
 * The order of a query, as it is at its start. `ending_soon`: running campaigns from the earliest end, then the others from the latest end.
 * `runningFrom`: slots that come first if they are running, in order. Undefined if the order has no such slots.
 */
function plannedOrder({ orders, columns }: SelectionSource, sort: Sort, now: number) {
  const slots = orders[sortedBy[sort]].slots()
  if (sort !== 'ending_soon') return { slots, runningFrom: undefined }
  const byEnd = orders.end.slots()
  const { end } = columns()
  const ended = countWhile(byEnd, slot => (end[slot] ?? 0) <= now)
  return { slots, runningFrom: byEnd.subarray(ended) }
}

/** The marked slots in order. `countMax`: how many there are at most. */
async function taken(
  marks: Uint8Array,
  countMax: number,
  { slots, runningFrom }: ReturnType<typeof plannedOrder>,
  { columns, statuses }: SelectionSource,
  pause: Pause,
): Promise<Uint32Array> {
  const found = new Uint32Array(countMax)
  let count = 0
  const live = statuses.find('LIVE')
  for (let at = 0; runningFrom && at < runningFrom.length; at++) {
    const slot = runningFrom[at] ?? 0
    if (marks[slot] === marked && columns().status[slot] === live) {
      // From now on it counts as running, whatever it becomes during a pause.
      marks[slot] = running
      found[count++] = slot
    }
    if (at % slotsAtOnce === slotsAtOnce - 1) await pause()
  }
  for (let from = 0; from < slots.length; from += slotsAtOnce) {
    const to = Math.min(slots.length, from + slotsAtOnce)
    for (let at = from; at < to; at++) {
      const slot = slots[at] ?? 0
      if (marks[slot] === marked) found[count++] = slot
    }
    await pause()
  }
  return count === countMax ? found : found.slice(0, count)
}

/** Those of the `changed` latest changes that match, in order. */
function matchingOf(
  { orders, columns, statuses }: SelectionSource,
  byUpdate: Uint32Array,
  changed: number,
  { status, category }: Filter,
  sort: Sort,
  now: number,
): Uint32Array {
  const { status: statusOf, category: categoryOf, end } = columns()
  // Polls of nearly the same moment share the sorted places. At most half of them are of older changes.
  const count = Math.min(byUpdate.length, 2 ** Math.ceil(Math.log2(Math.max(1, changed))))
  const found = new Uint32Array(changed)
  let size = 0
  const take = (order: SlotOrder, fits: (slot: number) => boolean) => {
    const places = order.arrangeFirst(byUpdate, count)
    for (let at = 0; at < places.length; at++) {
      const place = places[at] ?? 0
      if (place >= changed) continue
      const slot = byUpdate[place] ?? 0
      if (status !== anyValue && statusOf[slot] !== status) continue
      if (category !== anyValue && categoryOf[slot] !== category) continue
      if (fits(slot)) found[size++] = slot
    }
  }
  const order = orders[sortedBy[sort]]
  if (sort === 'ending_soon') {
    const live = statuses.find('LIVE')
    const isRunning = (slot: number) => statusOf[slot] === live && (end[slot] ?? 0) > now
    take(orders.end, isRunning)
    take(order, slot => !isRunning(slot))
  } else {
    take(order, () => true)
  }
  return size === changed ? found : found.slice(0, size)
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
