/**
 * The demo's catalog: the subjects of campaigns, and sentences for their texts, from `catalog/*.json`.
 *
 * Sentences are templates. `{word}` stands for a word of the list of that name, drawn once per campaign, so that title,
 * subtitle and description speak of the same thing; `{Word}` is the same word with a capital. Weights and demands are
 * relative to those of the other entries.
 */
import { readFileSync } from 'node:fs'
import * as z from 'zod'
import { demoCurrencies } from './money.ts'

export type Catalog = ReturnType<typeof readCatalog>
export type Category = Catalog['categories'][number]
export type Genre = Category['genres'][number]
export type Supply = z.infer<typeof supply>
export type Paragraphs = z.infer<typeof paragraphs>

const positive = z.number().positive()
const text = z.string().min(1)
const texts = z.array(text).min(1)
/** Lists of words by the name of their slot, in lower case except for names. */
const words = z.record(z.string(), texts)
/** Paragraphs for any campaign, and more for each kind of delivery: backers wait for a parcel or for an invitation. */
const paragraphs = z.strictObject({ any: texts, parcel: texts, event: texts })
/** A tier is for anyone, for the first few backers, or limited to some pieces. */
const supply = z.enum(['open', 'early', 'scarce'])
/** The approximate price in major units of the platform's currency. */
const tier = z.strictObject({ title: text, description: text, price: positive, demand: positive, supply })
const tierSet = z.enum(['art', 'community', 'game', 'garment', 'print', 'product', 'sound', 'stage'])
const home = z.strictObject({ currency: z.enum(demoCurrencies), weight: positive, places: texts })

/** A subcategory. `thing` is the product, in the singular, and `pitches` are first paragraphs of the description. */
const genre = z.strictObject({
  name: text,
  thing: text,
  priceFactor: positive.default(1),
  // These replace the category's lists of the same name.
  words: words.default({}),
  titles: texts,
  subtitles: texts,
  pitches: texts,
  tags: texts,
})

/** `studios` are second words of its creators' names; `making`, `spending` and `risks` are paragraphs. */
export const categorySchema = z.strictObject({
  name: text,
  projectType: text,
  weight: positive,
  delivery: z.enum(['parcel', 'event']),
  tiers: tierSet,
  studios: texts,
  words,
  making: texts,
  spending: texts,
  risks: texts,
  genres: z.array(genre).min(1),
})

const sharedParagraphs = z.strictObject({
  stories: paragraphs,
  timetables: paragraphs,
  closings: texts,
  updates: paragraphs,
  farewells: texts,
  risks: paragraphs,
})

const categoryFiles =
  'art comics community design fashion film food games music publishing stage technology'.split(' ')

let kept: Catalog | undefined

/** The catalog, which is read on the first call. */
export function catalog(): Catalog {
  kept ??= readCatalog()
  return kept
}

function readCatalog() {
  const tiers = read('tiers', z.record(tierSet, z.array(tier).min(3)))
  return {
    ...read('paragraphs', sharedParagraphs),
    words: read('words', words),
    homes: read('homes', z.array(home)),
    categories: categoryFiles.map(file => {
      const category = read(file, categorySchema)
      return { ...category, tiers: tiers[category.tiers] }
    }),
  }
}

function read<T extends z.ZodType>(file: string, schema: T): z.infer<T> {
  const json = readFileSync(new URL(`./catalog/${file}.json`, import.meta.url), 'utf8')
  return checked(file, schema, JSON.parse(json))
}

/** The content of a file with the right shape. Throws an error that names the file and the place of each mistake. */
export function checked<T extends z.ZodType>(file: string, schema: T, content: unknown): z.infer<T> {
  const { success, data, error } = schema.safeParse(content)
  if (success) return data
  throw new Error(`services/demo/catalog/${file}.json:\n${z.prettifyError(error)}`)
}
