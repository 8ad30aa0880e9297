import { expect, test } from 'vitest'
import { parseListQuery } from '../../contracts/api/parameters.ts'
import { listKey } from '../../services/query/lists/campaign-lists.ts'
import { coldPaths, seededRandom } from './cold-requests.ts'

const paths = coldPaths({ campaigns: 400_000, categories: 15, count: 200 }, seededRandom(1))

test('no list, page or detail is requested twice', () => {
  const lists = [...paths.lists, ...paths.wholeLists].map(path => {
    const parsed = parseListQuery(path.slice(path.indexOf('?') + 1))
    if ('fault' in parsed) throw new Error(`${path}: ${parsed.fault.parameter} ${parsed.fault.rule}`)
    return listKey(parsed.parameters)
  })
  expect(new Set(lists).size).toBe(lists.length)
  expect(new Set(paths.pages).size).toBe(paths.pages.length)
  expect(new Set(paths.details).size).toBe(paths.details.length)
})

test('every run makes the same requests', () => {
  expect(coldPaths({ campaigns: 400_000, categories: 15, count: 200 }, seededRandom(1))).toEqual(paths)
})
