import { expect, test } from 'vitest'
import { parseListQuery } from '../../contracts/api/parameters.ts'
import { listKey } from '../../services/query/campaign-lists.ts'
import { coldPaths, seededRandom } from './cold-requests.ts'

const paths = coldPaths({ campaigns: 400_000, categories: 15, count: 200 }, seededRandom(1))

test('no list is one that was asked for before, nor any page or detail', () => {
  const lists = [...paths.lists, ...paths.wholeLists].map(path => {
    const parsed = parseListQuery(path.slice(path.indexOf('?') + 1))
    if ('fault' in parsed) throw new Error(`${path}: ${parsed.fault.parameter} ${parsed.fault.rule}`)
    return listKey(parsed.parameters)
  })
  expect(new Set(lists).size).toBe(lists.length)
  expect(new Set(paths.pages).size).toBe(paths.pages.length)
  expect(new Set(paths.details).size).toBe(paths.details.length)
})

test('every run asks for the same', () => {
  expect(coldPaths({ campaigns: 400_000, categories: 15, count: 200 }, seededRandom(1))).toEqual(paths)
})
