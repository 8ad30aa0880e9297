/**
 * The shape of the demo's catalogue: what campaigns are about, and the sentences they are made of.
 *
 * Sentences are templates. `{word}` stands for a word of the list of that name, drawn once a campaign, so that title,
 * subtitle and description speak of the same thing; `{Word}` is the same word with a capital.
 */

/** Lists of words by the name of their slot, in lower case except for names. */
export type Words = Readonly<Record<string, readonly string[]>>

/** A subcategory. */
export interface Genre {
  name: string
  /** What is made, in the singular: 'graphic novel'. Fills the slot `{thing}`. */
  thing: string
  titles: readonly string[]
  subtitles: readonly string[]
  /** First paragraphs of the description. */
  pitches: readonly string[]
  tags: readonly string[]
  /** Lists that stand in for the category's of the same name. */
  words?: Words
  /** Multiplies the prices of the tiers; 1 when left out. */
  priceFactor?: number
}

/** Whether backers wait for a parcel or for an invitation. */
export type Delivery = 'parcel' | 'event'

/** Paragraphs for any campaign, and more of them for each kind of delivery. */
export type Paragraphs = Readonly<Record<'any' | Delivery, readonly string[]>>

/** How a reward tier is offered: to anyone, to the first few, or once or a few times only. */
export type Supply = 'open' | 'early' | 'scarce'

export interface Tier {
  title: string
  description: string
  /** Around so many major units of the platform's currency. */
  price: number
  /** How often it is chosen, relative to the other tiers. */
  demand: number
  supply: Supply
}

export interface Category {
  name: string
  projectType: string
  /** How many campaigns it has, relative to the other categories. */
  weight: number
  words: Words
  delivery: Delivery
  /** Second words of its creators' names. */
  studios: readonly string[]
  /** Paragraphs: how it is made, and what the money is for. */
  making: readonly string[]
  spending: readonly string[]
  risks: readonly string[]
  tiers: readonly Tier[]
  genres: readonly Genre[]
}
