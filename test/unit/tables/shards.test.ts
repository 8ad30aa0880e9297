import { describe, expect, test } from 'vitest'
import { checkVersion, VersionTooOld } from '../../../services/tables/shards.ts'

describe('a version of ClickHouse that lets consumers of the API miss changes', () => {
  test.each(['25.8.12.1', '26.1.9.3', '', 'unknown'])('is refused if there are replicas: %j', version => {
    expect(() => checkVersion({ shard: 'one', version, replicas: 2 })).toThrow(VersionTooOld)
  })

  test.each(['26.2.1.1', '26.10.1.1', '27.1.1.1'])('is not this one: %s', version => {
    expect(() => checkVersion({ shard: 'one', version, replicas: 3 })).not.toThrow()
  })

  test('does no harm without replicas', () => {
    expect(() => checkVersion({ shard: 'one', version: '25.8.12.1', replicas: 1 })).not.toThrow()
  })

  test('is named, with the shard and what is needed', () => {
    expect(() => checkVersion({ shard: 'two', version: '25.8.1.2', replicas: 2 })).toThrow(
      'the shard two has ClickHouse 25.8.1.2, but replicas need 26.2 or later',
    )
  })
})
