/**
 * The configuration of the child server, as the text of its two files. Pure.
 *
 * There are three users. They are in a file because this server cannot store users that are created with SQL:
 * - `pledgeview`, the program: all rights, with a random password;
 * - `pledgeview_definer`: the views read as this user. It may read what they need, and it cannot log in;
 * - `analyst`, the data teams: only the views, within bounds. Whoever may insert into any table can read every file of this process:
 *   this server takes `INSERT ... FROM INFILE`, which an ordinary one refuses. So there is no database for analysts to write to.
 *
 * `contracts/tables/roles` defines the rights and bounds of the last two.
 *
 * A fourth user, `default`, is the session that opens the ports. ClickHouse lets it in without a password, so any
 * program on this machine could use its name. So it may have one session, which it has, and its quota is used up when
 * the ports are open. A quota alone would not be enough, because statements that read no table are not counted.
 */
import { hash } from 'node:crypto'
import { queryBytesMax } from '../tables/clickhouse/clickhouse.ts'
import type { Databases } from '../tables/port.ts'
import { definerUser, type Role, type RoleSetting, readRole } from '../tables/schema/roles.ts'

export interface ServerConfiguration {
  /** Absolute path of ClickHouse's data. */
  dataDirectory: string
  /** Absolute path of the folder with the two files and the log. */
  filesDirectory: string
  httpPort: number
  /** The port of ClickHouse's native protocol; `undefined`: none. */
  nativePort: number | undefined
  programPassword: string
  /** The data teams' user; `undefined`: none. With an empty password any program on this machine can log in. */
  analyst: { password: string } | undefined
  /** The most memory that ClickHouse may take, bytes. */
  memoryBytesMax: number
  /** The cores of the machine, or of the container. */
  cores: number
  databases: Databases
  /** Other servers in the same cluster, by ClickHouse's setting names; for tests. */
  more?: XmlObject
  /** More users, with their profiles and quotas; for tests. */
  moreUsers?: Partial<Record<'users' | 'profiles' | 'quotas', XmlObject>>
}

export const programUser = 'pledgeview'
export const analystUser = 'analyst'
export const configurationFile = 'config.xml'
export const usersFile = 'users.xml'
export const logFile = 'clickhouse.log'
/** The workload of the program's queries (analysts.ts). */
export const programWorkload = 'program'
export const workloadDirectory = 'workloads'
export const workingDirectory = 'gone'

const analystRole = 'pledgeview_analyst'

// An idle session ends after 5 s, whatever time it asks for.
const sessionSecondsMax = 5

/**
 * Settings that are not bounds, but that an analyst could do harm with: files that this process reads or writes,
 * and text that a browser would show. The role has the one with an address. `add_http_cors_header` is not in the list:
 * ClickHouse's own page sends it. It has no effect here (`http_options_response`).
 */
const fixedForAnalysts: readonly RoleSetting[] = Object.entries({
  // Files of this machine (child.ts).
  format_schema: '',
  format_template_resultset: '',
  format_template_row: '',
  input_format_record_errors_file_path: '',
  output_format_schema: '',
  // Headers that would make a browser show the answer to a linked query as a page of this origin.
  http_response_headers: '{}',
  // What a session holds counts for no query. So it lives for seconds, and one request adds little.
  log_comment: '',
}).map(([name, value]): RoleSetting => ({ name, value }))

// A statement may be as long as one of our own client. No value of a session's setting is longer.
const queryBytes = {
  name: 'max_query_size',
  value: '262144',
  range: { min: '1', max: String(queryBytesMax) },
}

/**
 * Any page in a browser on this machine can ask the loopback. If its owner lets a name of his lead here (DNS rebinding), the browser takes
 * the answer for one of the page's own server. So only names that nobody else can own are answered. A client that is no browser sends no
 * `Sec-Fetch-Site`, and may send no `Host`.
 */
const forThisMachine = {
  Host: 'regex:(?i)^((localhost|host\\.docker\\.internal|[\\d.]+|\\[[\\da-f:.]+\\])(:\\d+)?)?$',
}
const notForOtherPages = { 'Sec-Fetch-Site': 'regex:^(same-origin|none)?$' }

/**
 * All that is served over HTTP. Without these rules ClickHouse has more pages, which need no sign-in, and its own client in the
 * browser, which runs within this process, with files and editors of this machine.
 */
const httpRules: readonly XmlObject[] = [
  { url: '/ping', handler: { type: 'static', response_content: 'Ok.\n' } },
  { url: '/play', methods: 'GET,HEAD', headers: forThisMachine, handler: { type: 'play' } },
  {
    url: '/',
    headers: { ...forThisMachine, ...notForOtherPages },
    handler: { type: 'dynamic_query_handler', query_param_name: 'query' },
  },
]

const loopback = '127.0.0.1'
// The longest interval that ClickHouse can count. It starts again in 2038.
const quotaSecondsMax = 2_147_483_647
const cacheBytesMax = 67_108_864
const silenceSecondsMax = 10
// When a client of the native protocol reads nothing for 30 s, its query ends. A kill does not end it earlier.
export const unreadSecondsMax = 30

/**
 * The statements of the session that opens the ports. The last one never ends. `page` is fetched before the ports
 * open (child.ts).
 */
export function listenStatements({ nativePort }: ServerConfiguration, page: string): string[] {
  return [
    `SELECT * FROM url('${page}', LineAsString) FORMAT Null`,
    'SYSTEM START LISTEN HTTP',
    ...(nativePort === undefined ? [] : ['SYSTEM START LISTEN TCP']),
    'SELECT sleepEachRow(3) FROM numbers(1000000000) SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 0 FORMAT Null',
  ]
}

export function configurationText(configuration: ServerConfiguration): string {
  const { dataDirectory, filesDirectory, httpPort, nativePort, memoryBytesMax, cores, more } = configuration
  return document({
    path: dataDirectory,
    tmp_path: `${dataDirectory}/tmp/`,
    workload_path: `${filesDirectory}/${workloadDirectory}/`,
    user_files_path: `${dataDirectory}/user_files/`,
    users_config: `${filesDirectory}/${usersFile}`,
    listen_host: loopback,
    http_port: httpPort,
    http_handlers: { rule: httpRules },
    // With it, ClickHouse adds no CORS headers of its own, whatever a request asks for.
    http_options_response: { header: { name: 'Allow', value: 'GET, POST' } },
    ...(nativePort !== undefined && { tcp_port: nativePort }),
    // Not asynchronous: a server that ends at its start must have written why.
    logger: { log: `${filesDirectory}/${logFile}`, size: '10M', count: 3, async: false },
    max_server_memory_usage: memoryBytesMax,
    max_concurrent_queries: 100,
    // By default there are as many threads as cores, and one kind of task may use only some of them. On few cores the tasks of many tables wait
    // for each other, and ClickHouse logs a warning for each wait: twenty lines a second, which push errors out of the log.
    background_schedule_pool_size: Math.max(32, cores),
    default_session_timeout: sessionSecondsMax,
    max_session_timeout: sessionSecondsMax,
    // Folds and pages read little at a time. The defaults are meant for machines with hundreds of gigabytes.
    mark_cache_size: cacheBytesMax,
    primary_index_cache_size: cacheBytesMax,
    uncompressed_cache_size: 0,
    // A part that cannot be read is an error that an operator has to look at. By default ClickHouse sets it aside,
    // and the table continues with fewer rows.
    merge_tree: { max_suspicious_broken_parts: 0 },
    // Other users see of `system` only the descriptions of the tables that they may read.
    access_control_improvements: {
      select_from_system_db_requires_grant: true,
      // The same descriptions under their standard name.
      select_from_information_schema_requires_grant: false,
    },
    ...more,
  })
}

export function usersText(configuration: ServerConfiguration): string {
  const { programPassword, analyst, databases, moreUsers: { users, profiles, quotas } = {} } = configuration
  const definer = readRole(definerUser, databases)
  const { grants } = readRole(analystRole, databases)
  return document({
    profiles: {
      // ClickHouse reads this profile before it knows the user: how long a connection may say nothing. A connection takes one of
      // the places of all users, and without these bounds 30 s over HTTP, and 300 s in the native protocol.
      default: { http_receive_timeout: silenceSecondsMax, receive_timeout: silenceSecondsMax },
      program: { workload: programWorkload },
      listen: { max_sessions_for_user: 1 },
      // A view passes the settings of a query on to what it reads, as far as the definer's profile lets them change. The
      // settings of a subquery have met no other constraint: ClickHouse checks those of the whole query alone.
      definer: profileOf(definer),
      analyst: {
        readonly: 2,
        send_timeout: unreadSecondsMax,
        ...profileOf({
          settings: [...analystBounds(configuration), ...fixedForAnalysts, queryBytes],
          changeable: [],
        }),
      },
      ...profiles,
    },
    quotas: {
      default: {},
      listen: {
        interval: { duration: quotaSecondsMax, queries: listenStatements(configuration, '').length },
      },
      ...quotas,
    },
    users: {
      default: {
        password: '',
        networks: { ip: loopback },
        profile: 'listen',
        quota: 'listen',
        grants: {
          query: [
            'GRANT SYSTEM LISTEN ON *.*',
            'GRANT CREATE TEMPORARY TABLE ON *.*',
            "GRANT READ ON URL('http://127\\.0\\.0\\.1:.*')",
          ],
        },
      },
      [programUser]: {
        password_sha256_hex: hash('sha256', programPassword),
        networks: { ip: loopback },
        profile: 'program',
        quota: 'default',
        access_management: 1,
        named_collection_control: 1,
      },
      [definerUser]: {
        // No password has this hash, and no network is allowed.
        password_sha256_hex: '0'.repeat(64),
        networks: {},
        profile: 'definer',
        quota: 'default',
        grants: { query: definer.grants },
      },
      ...(analyst && {
        [analystUser]: {
          ...(analyst.password === ''
            ? { password: '' }
            : { password_sha256_hex: hash('sha256', analyst.password) }),
          networks: { ip: loopback },
          profile: 'analyst',
          quota: 'default',
          grants: { query: grants },
        },
      }),
      ...users,
    },
  })
}

/** How many threads analysts may use together: half of the cores. */
export function analystThreads(cores: number): number {
  return Math.max(1, Math.floor(cores / 2))
}

/**
 * The bounds of the analysts' role, fitted to this server. One query gets a quarter of its memory and all of them
 * together a third, so folds and lists always find memory.
 */
export function analystBounds({ memoryBytesMax, cores, databases }: ServerConfiguration): RoleSetting[] {
  const bounds: Readonly<Record<string, number>> = {
    max_memory_usage: Math.floor(memoryBytesMax / 4),
    max_memory_usage_for_user: Math.floor(memoryBytesMax / 3),
    max_threads: analystThreads(cores),
  }
  return readRole(analystRole, databases).settings.map(setting => {
    const bound = bounds[setting.name]
    if (bound === undefined) return setting
    const value = String(setting.name === 'max_threads' ? Math.min(bound, Number(setting.value)) : bound)
    return { ...setting, value, ...(setting.range && { range: { min: '1', max: value } }) }
  })
}

function profileOf({ settings, changeable }: Pick<Role, 'settings' | 'changeable'>): XmlObject {
  return {
    ...Object.fromEntries(settings.map(({ name, value }) => [name, value])),
    constraints: {
      ...Object.fromEntries(settings.map(({ name, range }) => [name, range ?? { const: {} }])),
      ...Object.fromEntries(changeable.map(name => [name, { changeable_in_readonly: {} }])),
    },
  }
}

type XmlValue = string | number | boolean | XmlObject

/** Elements by name. An array is the same element several times. */
export interface XmlObject {
  [name: string]: XmlValue | readonly XmlValue[]
}

function document(content: XmlObject): string {
  return `<clickhouse>${elements(content)}\n</clickhouse>\n`
}

function elements(content: XmlObject, indent = '\n  '): string {
  return Object.entries(content)
    .flatMap(([name, value]) => [value].flat().map(item => element(name, item, indent)))
    .join('')
}

function element(name: string, value: XmlValue, indent: string): string {
  if (typeof value !== 'object') return `${indent}<${name}>${escaped(String(value))}</${name}>`
  const inner = elements(value, `${indent}  `)
  return inner === '' ? `${indent}<${name}/>` : `${indent}<${name}>${inner}${indent}</${name}>`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
