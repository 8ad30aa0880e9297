/** Fills the catalogue's templates, so that one campaign's title, subtitle and description speak of the same thing. */
import type { Category, Genre, Words } from './catalog/types.ts'
import { closings, paragraphsFor, risks, sharedWords, stories, timetables } from './catalog/words.ts'
import { chance, intBetween, pick, type Random, sample } from './random.ts'

/** The words that one campaign's templates are filled with, by slot. */
export type Slots = Readonly<Record<string, string>>

export interface CampaignTexts {
  subtitle: string | null
  /** What a draft has before it is written out. */
  opening: string
  description: string
  risks: string
  tags: string[]
}

/** Draws one word for every slot that the category's and genre's templates may have. */
export function drawSlots(random: Random, category: Category, genre: Genre, city: string): Slots {
  const words: Words = { ...sharedWords, ...category.words, ...genre.words }
  const slots: Record<string, string> = { city, thing: genre.thing, volume: pick(random, volumes) }
  for (const [name, list] of Object.entries(words)) slots[name] = pick(random, list)
  slots.creature2 = pickOther(random, words.creature ?? [], slots.creature)
  slots.noun2b = pickOther(random, words.noun2 ?? [], slots.noun2)
  slots.creatures = pluralOf(slots.creature ?? '')
  slots.nouns = pluralOf(slots.noun ?? '')
  return slots
}

/** Replaces `{slot}` by its word and `{Slot}` by the word with a capital. Throws on a slot that has no word. */
export function fill(template: string, slots: Slots): string {
  return replaceSlots(template, slots, capitalize)
}

/** Like `fill`, with capitals as in a title. */
export function fillTitle(template: string, slots: Slots): string {
  return capitalize(replaceSlots(template, slots, titleCase))
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

/** Everything but the title. Times are in ms; `endAt` names the months in the timetable. */
export function composeTexts(
  random: Random,
  { category, genre, slots, endAt }: { category: Category; genre: Genre; slots: Slots; endAt: number },
): CampaignTexts {
  const workMonths = intBetween(random, 2, 4)
  const dated: Slots = {
    ...slots,
    endMonth: monthAfter(endAt, 0),
    workMonth: monthAfter(endAt, workMonths),
    shipMonth: monthAfter(endAt, workMonths + intBetween(random, 2, 4)),
  }
  const opening = fill(pick(random, genre.pitches), dated)
  const paragraphs = [
    opening,
    fill(pick(random, paragraphsFor(stories, category.delivery)), dated),
    fill(pick(random, category.making), dated),
    fill(pick(random, category.spending), dated),
    fill(pick(random, paragraphsFor(timetables, category.delivery)), dated),
    ...(chance(random, 0.7) ? [fill(pick(random, closings), dated)] : []),
  ]
  return {
    subtitle: chance(random, 0.05) ? null : fill(pick(random, genre.subtitles), dated),
    opening,
    description: paragraphs.join('\n\n'),
    risks: `${fill(pick(random, category.risks), dated)} ${pick(random, paragraphsFor(risks, category.delivery))}`,
    tags: sample(random, genre.tags, intBetween(random, 1, 4)),
  }
}

const volumes = ['two', 'three', 'four', 'five', 'six', 'seven']

const months = (
  'January, February, March, April, May, June, ' + 'July, August, September, October, November, December'
).split(', ')

function monthAfter(timeMs: number, count: number): string {
  const month = new Date(timeMs).getUTCMonth() + count
  return months[month % 12] ?? ''
}

function replaceSlots(template: string, slots: Slots, capital: (word: string) => string): string {
  const filled = template.replace(/\{(\w+)\}/g, (_, slot: string) => {
    const name = slot.charAt(0).toLowerCase() + slot.slice(1)
    const word = slots[name]
    if (word === undefined) throw new Error(`no word for {${slot}} in ${JSON.stringify(template)}`)
    return name === slot ? word : capital(word)
  })
  // A template cannot know whether the word after its article begins with a vowel.
  return filled.replace(/\b([Aa]) (?=[aeiou](?!ne\b))/gi, '$1n ')
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

const smallWords = new Set('a an and at behind by for from in of on that the to with'.split(' '))

function titleCase(text: string): string {
  return text
    .split(' ')
    .map(word => (smallWords.has(word) ? word : capitalize(word)))
    .join(' ')
}

function pickOther(random: Random, list: readonly string[], taken: string | undefined): string {
  return pick(
    random,
    list.filter(word => word !== taken),
  )
}

function pluralOf(word: string): string {
  if (word.endsWith('fish')) return word
  if (word.endsWith('mouse')) return `${word.slice(0, -5)}mice`
  if (/(s|x|ch)$/.test(word)) return `${word}es`
  return /[^aeiou]y$/.test(word) ? `${word.slice(0, -1)}ies` : `${word}s`
}
