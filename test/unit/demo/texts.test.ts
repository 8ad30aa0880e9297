import { describe, expect, test } from 'vitest'
import { catalog, categorySchema, checked } from '../../../services/demo/catalog.ts'
import { randomOf } from '../../../services/demo/random.ts'
import { composeTexts, drawSlots, fill, fillTitle, slugOf } from '../../../services/demo/texts.ts'

const { categories } = catalog()

describe('the demo’s texts', () => {
  test('every template of the catalog can be filled, with every draw of words', () => {
    for (const category of categories) {
      for (const genre of category.genres) {
        const templates = [
          ...[genre.titles, genre.subtitles, genre.pitches, category.making, category.spending].flat(),
          ...[category.risks, category.tiers.map(tier => tier.title)].flat(),
          ...category.tiers.map(tier => tier.description),
        ]
        for (let draw = 0; draw < 5; draw++) {
          const slots = drawSlots(randomOf('templates', draw), category, genre, 'Porto')
          for (const template of templates) {
            const text = fill(template, slots)
            expect(text).not.toMatch(/[{}]|undefined|\s\s/)
            expect(text).not.toMatch(/\ba (?=[aeiou])(?!one\b)/i)
          }
        }
      }
    }
  })

  test('the shared paragraphs can be filled for every kind of campaign', () => {
    for (const category of categories) {
      for (const genre of category.genres) {
        for (let draw = 0; draw < 20; draw++) {
          const random = randomOf('paragraphs', genre.name, draw)
          const slots = drawSlots(random, category, genre, 'Porto')
          const texts = composeTexts(random, { category, genre, slots, endAt: Date.UTC(2026, 10, 30) })
          expect(`${texts.description}\n${texts.risks}\n${texts.subtitle}`).not.toMatch(/[{}]|undefined/)
          expect(texts.description.split('\n\n').length).toBeGreaterThanOrEqual(5)
          expect(texts.description.startsWith(texts.opening)).toBe(true)
          expect(new Set(texts.tags).size).toBe(texts.tags.length)
        }
      }
    }
  })

  test('a mistake in the catalog is named by its file and place', () => {
    const [food] = categories
    const wrong = { ...food, tiers: 'art', delivery: 'pigeon', genres: [{ ...food?.genres[0], titles: [7] }] }
    const check = (): unknown => checked('food', categorySchema, wrong)
    expect(check).toThrow('catalog/food.json')
    expect(check).toThrow('at delivery')
    expect(check).toThrow('at genres[0].titles[0]')
  })

  test('names are unique, so that a filter by name means one thing', () => {
    const names = categories.map(({ name }) => name)
    const genres = categories.flatMap(category => category.genres.map(({ name }) => name))
    expect(new Set(names).size).toBe(12)
    expect(new Set(genres).size).toBe(genres.length)
  })

  test('a word is the same wherever its slot stands, with a capital where the slot has one', () => {
    const slots = { creature: 'owl', subject: 'the people who mend boats' }
    expect(fill('{Creature} and a {creature}', slots)).toBe('Owl and an owl')
    expect(fillTitle('Notes on {Subject}', slots)).toBe('Notes on the People Who Mend Boats')
    expect(() => fill('{nothing}', slots)).toThrow('{nothing}')
  })

  test('slugs are URL-safe and keep what can be read', () => {
    expect(slugOf('Nobody’s Café & Göteborg: Clock No. 7')).toBe('nobodys-cafe-goteborg-clock-no-7')
    expect(slugOf('  “Up the Mill!” ')).toBe('up-the-mill')
  })
})
