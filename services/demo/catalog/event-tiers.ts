/** Reward tiers, cheapest first, of campaigns whose backers come along: to listen, to watch, to join in. */
import type { Tier } from './types.ts'

/** The smallest tier of every campaign. */
export const thanks: Tier = {
  title: 'A warm thank-you',
  description: 'No parcel, no plastic: your chosen name among the supporters, and our thanks.',
  price: 4,
  demand: 8,
  supply: 'open',
}

export const soundTiers: readonly Tier[] = [
  thanks,
  {
    title: 'Download',
    description: 'The whole recording in lossless quality, two weeks before anyone else.',
    price: 10,
    demand: 30,
    supply: 'open',
  },
  {
    title: 'On disc',
    description: 'The CD in a printed card sleeve, with words and notes, and the download.',
    price: 18,
    demand: 22,
    supply: 'open',
  },
  {
    title: 'First pressing',
    description: 'The record on heavy vinyl, first pressing, numbered by hand, and the download.',
    price: 32,
    demand: 30,
    supply: 'early',
  },
  {
    title: 'Record and rehearsal tape',
    description: 'The record, the download and an hour of rehearsals, wrong turns included.',
    price: 48,
    demand: 12,
    supply: 'open',
  },
  {
    title: 'Guest list for two',
    description: 'Two places at the release concert, and the record waiting at the door.',
    price: 65,
    demand: 6,
    supply: 'early',
  },
  {
    title: 'A concert in your kitchen',
    description: 'We come and play for you and your neighbours, within a day’s travel.',
    price: 620,
    demand: 1,
    supply: 'scarce',
  },
]

export const stageTiers: readonly Tier[] = [
  thanks,
  {
    title: 'Watch from home',
    description: 'A link to the finished work for a month, with subtitles, and the printed programme as PDF.',
    price: 12,
    demand: 28,
    supply: 'open',
  },
  {
    title: 'A seat',
    description: 'One seat on a night of your choice, and your name in the programme.',
    price: 24,
    demand: 34,
    supply: 'open',
  },
  {
    title: 'Opening night',
    description: 'One seat on the first night, and a glass of something with everyone afterwards.',
    price: 48,
    demand: 20,
    supply: 'early',
  },
  {
    title: 'Behind the curtain',
    description: 'Come to a rehearsal day, ask anything, and take two seats for later.',
    price: 95,
    demand: 7,
    supply: 'early',
  },
  {
    title: 'A row for the school',
    description: 'We invite a class of twenty in your name, with a talk after the show.',
    price: 280,
    demand: 2,
    supply: 'open',
  },
  {
    title: 'A thing from the set',
    description: 'One prop, mask or model from the production, with its story.',
    price: 260,
    demand: 1,
    supply: 'scarce',
  },
]

export const communityTiers: readonly Tier[] = [
  { ...thanks, demand: 18 },
  {
    title: 'A brick’s worth',
    description: 'Your chosen name on the board by the door, and the yearly letter on how things go.',
    price: 15,
    demand: 34,
    supply: 'open',
  },
  {
    title: 'Founding friend',
    description: 'Founding membership for a year, a cloth bag, and an invitation to the opening.',
    price: 38,
    demand: 28,
    supply: 'open',
  },
  {
    title: 'Workshop place',
    description: 'One place in a weekend workshop in the first season, lunch included.',
    price: 60,
    demand: 14,
    supply: 'early',
  },
  {
    title: 'Family membership',
    description: 'A year of everything for a household of any shape and size.',
    price: 85,
    demand: 10,
    supply: 'open',
  },
  {
    title: 'Name a bench',
    description: 'A bench, a shelf or a tree with a small plate and the words you choose.',
    price: 380,
    demand: 1,
    supply: 'scarce',
  },
]
