/** Fills the catalog's templates, so that a campaign's title, subtitle and description have the same subject. */
import { type Category, catalog, type Genre, type Paragraphs } from './catalog.ts'
import { chance, intBetween, pick, type Random, sample } from './random.ts'

/** The words for one campaign's templates, by slot. */
export type Slots = Readonly<Record<string, string>>

/** Draws one word for every slot that the category's and genre's templates may have. */
export function drawSlots(random: Random, category: Category, genre: Genre, city: string): Slots {
  const words = { ...catalog().words, ...category.words, ...genre.words }
  const slots: Record<string, string> = { city, thing: genre.thing }
  for (const [name, list] of Object.entries(words)) slots[name] = pick(random, list)
  const other = (name: string): string =>
    pick(random, words[name]?.filter(word => word !== slots[name]) ?? [])
  slots.creature2 = other('creature')
  slots.noun2b = other('noun2')
  slots.creatures = pluralOf(slots.creature ?? '')
  slots.nouns = pluralOf(slots.noun ?? '')
  return slots
}

/** Replaces `{slot}` by its word and `{Slot}` by the word with a capital. Throws on a slot that has no word. */
export function fill(template: string, slots: Slots, capital: (word: string) => string = capitalize): string {
  const filled = template.replace(/\{(\w+)\}/g, (_, slot: string) => {
    const name = slot.charAt(0).toLowerCase() + slot.slice(1)
    const word = slots[name]
    if (word === undefined) throw new Error(`no word for {${slot}} in ${JSON.stringify(template)}`)
    return name === slot ? word : capital(word)
  })
  // Templates always use the article "a". This replaces it before a vowel.
  return filled.replace(/\b([Aa]) (?=[aeiou](?!ne\b))/gi, '$1n ')
}

const smallWords = new Set('a an and at behind by for from in of on that the to with'.split(' '))

/** Like `fill`, with capitals as in a title. */
export function fillTitle(template: string, slots: Slots): string {
  const titleCase = (text: string): string =>
    text.replace(/[^ ]+/g, word => (smallWords.has(word) ? word : capitalize(word)))
  return capitalize(fill(template, slots, titleCase))
}

/** The URL-safe form of a title: lower-case letters without accents, digits and hyphens. */
export function slugOf(title: string): string {
  return title
    .normalize('NFKD')
    .replace(/[\u0300-\u036f’]/g, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
}

/**
 * All texts except the title. The opening is the whole text of a draft that is not written out yet. `endAt` (ms) is the planned
 * end, on which the months of the timetable depend.
 */
export function composeTexts(
  random: Random,
  { category, genre, slots, endAt }: { category: Category; genre: Genre; slots: Slots; endAt: number },
) {
  const { stories, timetables, closings, risks } = catalog()
  const workMonths = intBetween(random, 2, 4)
  const dated: Slots = {
    ...slots,
    endMonth: monthAfter(endAt, 0),
    workMonth: monthAfter(endAt, workMonths),
    shipMonth: monthAfter(endAt, workMonths + intBetween(random, 2, 4)),
  }
  const filled = (templates: readonly string[]): string => fill(pick(random, templates), dated)
  const opening = filled(genre.pitches)
  const paragraphs = [
    opening,
    filled(paragraphsFor(stories, category)),
    filled(category.making),
    filled(category.spending),
    filled(paragraphsFor(timetables, category)),
    ...(chance(random, 0.7) ? [filled(closings)] : []),
  ]
  return {
    subtitle: chance(random, 0.05) ? null : filled(genre.subtitles),
    opening,
    description: paragraphs.join('\n\n'),
    risks: `${filled(category.risks)} ${filled(paragraphsFor(risks, category))}`,
    tags: sample(random, genre.tags, intBetween(random, 1, 4)),
  }
}

/** The paragraphs that suit a category's kind of delivery. */
export function paragraphsFor(paragraphs: Paragraphs, { delivery }: Category): readonly string[] {
  return [...paragraphs.any, ...paragraphs[delivery]]
}

export function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

const monthName = new Intl.DateTimeFormat('en', { month: 'long', timeZone: 'UTC' })

function monthAfter(timeMs: number, count: number): string {
  return monthName.format(Date.UTC(2000, new Date(timeMs).getUTCMonth() + count))
}

function pluralOf(word: string): string {
  if (word.endsWith('fish')) return word
  if (word.endsWith('mouse')) return `${word.slice(0, -5)}mice`
  if (/(s|x|ch)$/.test(word)) return `${word}es`
  return /[^aeiou]y$/.test(word) ? `${word.slice(0, -1)}ies` : `${word}s`
}
