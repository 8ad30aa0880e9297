import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { killStatement, workloadStatements } from '../../../services/clickhouse-server/analysts.ts'
import {
  analystBounds,
  configurationText,
  listenStatements,
  type ServerConfiguration,
  usersText,
} from '../../../services/clickhouse-server/configuration.ts'
import { generationOf } from '../../../services/tables/generations.ts'
import { readRole } from '../../../services/tables/roles.ts'

const configuration: ServerConfiguration = {
  dataDirectory: '/data/tables',
  filesDirectory: '/data/clickhouse',
  httpPort: 8123,
  nativePort: 9000,
  programPassword: 'of the program',
  analyst: { password: 'of the data teams' },
  memoryBytesMax: 3_000_000_000,
  cores: 8,
  databases: generationOf({ base: 'pledgeview', views: 'crowdfunding' }, 1),
}
const analystRole = readRole('pledgeview_analyst', configuration.databases)

describe('the configuration of ClickHouse’s server', () => {
  test('holds every path to the letter, whatever is in it', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme' }),
        fc.constantFrom('', '&', '<a>', ']]>', '"', "'", '&amp;'),
        (a, b) => {
          // What XML has no place for, no path has either.
          const path = `/${a}${b}`.replace(/[\p{Cc}\p{Cn}\p{Cs}]/gu, '')
          const files = `${path}/files`
          const { text, byPath } = read(
            configurationText({ ...configuration, dataDirectory: path, filesDirectory: files }),
          )
          expect(byPath('clickhouse/path')).toEqual([path])
          expect(byPath('clickhouse/tmp_path')).toEqual([`${path}/tmp/`])
          expect(byPath('clickhouse/users_config')).toEqual([`${files}/users.xml`])
          expect(byPath('clickhouse/logger/log')).toEqual([`${files}/clickhouse.log`])
          expect(text).not.toContain('<!')
        },
      ),
    )
  })

  test('has its password, and that of the data teams, as a hash alone, whatever they are', () => {
    const password = fc.string({ unit: 'grapheme', minLength: 12 }).filter(text => !/^[\w ]*$/.test(text))
    fc.assert(
      fc.property(password, password, (programPassword, analystPassword) => {
        const own = { ...configuration, programPassword, analyst: { password: analystPassword } }
        const { text, byPath } = read(usersText(own))
        expect(byPath('clickhouse/users/pledgeview/password_sha256_hex')).toEqual([sha256(programPassword)])
        expect(byPath('clickhouse/users/analyst/password_sha256_hex')).toEqual([sha256(analystPassword)])
        expect(byPath('clickhouse/users/analyst/password')).toEqual([])
        for (const file of [text, configurationText(own)]) {
          expect(file).not.toContain(programPassword)
          expect(file).not.toContain(analystPassword)
        }
      }),
    )
  })

  test('listens on the loopback alone, and lets in from nowhere else', () => {
    expect(read(configurationText(configuration)).byPath('clickhouse/listen_host')).toEqual(['127.0.0.1'])
    const { byPath } = read(usersText(configuration))
    for (const user of ['default', 'pledgeview', 'analyst']) {
      expect(byPath(`clickhouse/users/${user}/networks/ip`), user).toEqual(['127.0.0.1'])
    }
    expect(byPath('clickhouse/users/pledgeview_definer/networks/ip')).toEqual([])
  })

  test.each([undefined, 9_000])(
    'leaves its session as many queries as it needs to open the ports: %s',
    nativePort => {
      const statements = listenStatements({ nativePort }, 'http://127.0.0.1:1/page')
      expect(statements).toHaveLength(nativePort === undefined ? 3 : 4)
      const { byPath } = read(usersText({ ...configuration, nativePort }))
      expect(byPath('clickhouse/quotas/listen/interval/queries')).toEqual([String(statements.length)])
      expect(byPath('clickhouse/profiles/listen/max_sessions_for_user')).toEqual(['1'])
      expect(byPath('clickhouse/users/default/quota')).toEqual(['listen'])
      expect(byPath('clickhouse/users/default/profile')).toEqual(['listen'])
    },
  )

  test('has no user for data teams if there is no door for them', () => {
    const { byPath } = read(usersText({ ...configuration, analyst: undefined }))
    expect(byPath('clickhouse/users/pledgeview/profile')).toEqual(['program'])
    expect(byPath('clickhouse/users/analyst/profile')).toEqual([])
  })

  test('gives analysts what the files of the role grant, and nothing else', () => {
    const { byPath } = read(usersText(configuration))
    expect(analystRole.grants).toEqual(['GRANT SELECT ON crowdfunding.*'])
    expect(byPath('clickhouse/users/analyst/grants/query')).toEqual(analystRole.grants)
    expect(byPath('clickhouse/profiles/analyst/readonly')).toEqual(['2'])
    const definer = readRole('pledgeview_definer', configuration.databases)
    expect(definer.grants.length).toBeGreaterThan(0)
    expect(byPath('clickhouse/users/pledgeview_definer/grants/query')).toEqual(definer.grants)
  })

  test('bounds analysts by every setting of the role, each with its constraint', () => {
    const { byPath } = read(usersText(configuration))
    const bounds = analystBounds(configuration)
    expect(bounds.map(({ name }) => name)).toEqual(analystRole.settings.map(({ name }) => name))
    expect(bounds.length).toBeGreaterThan(10)
    for (const { name, value, range } of bounds) {
      expect(byPath(`clickhouse/profiles/analyst/${name}`), name).toEqual([value])
      const constraint = `clickhouse/profiles/analyst/constraints/${name}`
      expect(byPath(`${constraint}/min`), name).toEqual(range ? [range.min] : [])
      expect(byPath(`${constraint}/max`), name).toEqual(range ? [range.max] : [])
      expect(byPath(`${constraint}/const`), name).toEqual(range ? [] : [''])
    }
  })

  test('lets a query change nothing of what the definer of the views reads by, except for what its role names', () => {
    const { byPath } = read(usersText(configuration))
    expect(byPath('clickhouse/users/pledgeview_definer/profile')).toEqual(['definer'])
    expect(byPath('clickhouse/profiles/definer/readonly')).toEqual(['1'])
    expect(byPath('clickhouse/profiles/definer/constraints/readonly/const')).toEqual([''])
    const { changeable } = readRole('pledgeview_definer', configuration.databases)
    expect(changeable).toContain('max_threads')
    for (const name of changeable)
      expect(byPath(`clickhouse/profiles/definer/constraints/${name}/changeable_in_readonly`)).toEqual([''])
  })
})

describe('the bounds of analysts', () => {
  test('leave memory and threads to the program, whatever the machine has', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 268_435_456, max: 2 ** 45 }),
        fc.integer({ min: 1, max: 512 }),
        (memoryBytesMax, cores) => {
          const own = { ...configuration, memoryBytesMax, cores }
          const bounds = analystBounds(own)
          const bound = (name: string) => Number(bounds.find(one => one.name === name)?.value)
          expect(bound('max_memory_usage')).toBeLessThanOrEqual(memoryBytesMax / 4)
          expect(bound('max_memory_usage_for_user')).toBeLessThanOrEqual(memoryBytesMax / 3)
          expect(bound('max_threads')).toBeGreaterThanOrEqual(1)
          expect(bound('max_threads')).toBeLessThanOrEqual(Math.max(1, cores / 2))
          const [, queries = 0, threads = 0] =
            /max_concurrent_queries = (\d+), max_concurrent_threads = (\d+)/.exec(
              workloadStatements(own).join(),
            ) ?? []
          // One slow query leaves a slot.
          expect(Number(queries)).toBeGreaterThanOrEqual(2)
          expect(Number(threads)).toBeGreaterThanOrEqual(1)
          expect(Number(queries) + Number(threads)).toBeLessThanOrEqual(Math.max(3, cores / 2))
        },
      ),
    )
  })

  test('are what the watch ends queries by', () => {
    const statement = killStatement(configuration)
    const most = (name: string) => {
      const bound = analystBounds(configuration).find(one => one.name === name)
      return Number(bound?.range?.max ?? bound?.value)
    }
    expect(statement).toContain("user = 'analyst'")
    // ClickHouse has five seconds to end it itself.
    expect(statement).toMatch(
      new RegExp(`elapsed > if\\(.* > 0, least\\(.*, ${most('max_execution_time')}\\), 60\\) \\+ 5\\s`),
    )
    expect(statement).toContain(`memory_usage > ${most('max_memory_usage')}`)
    expect(statement).toContain(`read_rows > ${most('max_rows_to_read')}`)
    expect(statement).toContain(`BytesTotal'] > ${most('max_result_bytes')}`)
  })
})

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

interface ReadXml {
  text: string
  /** The texts of the elements there. */
  byPath(path: string): string[]
}

/** Reads elements without attributes, which is all there is. Throws on anything else. */
function read(text: string): ReadXml {
  const texts: [path: string, text: string][] = []
  const open: { name: string; text: string; isLeaf: boolean }[] = []
  for (const [token, end, start, empty, inner] of text.matchAll(/<\/([\w]+)>|<(\w+)>|<(\w+)\/>|([^<>]+)/gs)) {
    const path = [...open.map(({ name }) => name)].join('/')
    const top = open.at(-1)
    if (inner !== undefined && top) top.text += inner
    if ((start ?? empty) !== undefined && top) top.isLeaf = false
    if (start !== undefined) open.push({ name: start, text: '', isLeaf: true })
    if (empty !== undefined) texts.push([`${path}/${empty}`, ''])
    if (end === undefined) continue
    if (top?.name !== end) throw new Error(`${token} ends ${path}`)
    if (top.isLeaf) texts.push([path, unescaped(top.text)])
    open.pop()
  }
  if (open.length > 0) throw new Error('an element has no end')
  return { text, byPath: path => texts.filter(([at]) => at === path).map(([, inner]) => inner) }
}

function unescaped(text: string): string {
  if (/&(?!(amp|lt|gt);)/.test(text)) throw new Error(`no XML: ${text}`)
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
}
