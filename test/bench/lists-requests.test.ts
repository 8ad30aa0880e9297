import { expect, test } from 'vitest'
import { parseListQuery } from '../../contracts/api/parameters.ts'
import { listKey } from '../../services/query/lists/campaign-lists.ts'
import { seededRandom } from './cold-requests.ts'
import { listRequests } from './lists-requests.ts'

const size = { campaigns: 400_000, categories: 15, count: 100, now: Date.UTC(2026, 0) }
const requests = listRequests(size, seededRandom(1))

test('no list is requested twice, so that no cache has it', () => {
  const lists = Object.values(requests)
    .flat()
    .map(path => {
      const parsed = parseListQuery(path.slice(path.indexOf('?') + 1))
      if ('fault' in parsed) throw new Error(`${path}: ${parsed.fault.parameter} ${parsed.fault.rule}`)
      return listKey(parsed.parameters)
    })
  expect(new Set(lists).size).toBe(4 * size.count)
})

test('every run makes the same requests at the same time', () => {
  expect(listRequests(size, seededRandom(1))).toEqual(requests)
})
