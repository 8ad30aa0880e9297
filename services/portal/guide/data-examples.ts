/** The example queries of `contracts/tables/examples`, and links that open them in ClickHouse's play page. */
import { readdirSync, readFileSync } from 'node:fs'

export interface Example {
  /** `01-funding-by-category-and-month` */
  name: string
  /** The first line of the file. */
  question: string
  /** What a reader has to know of the answer; may be empty. */
  notes: string
  /** The whole query, with its comment. */
  sql: string
}

const folder = new URL('../../../contracts/tables/examples/', import.meta.url)
/** The database that the files name. */
const exampleViews = 'crowdfunding.'

/** All examples in order. Throws if a file does not begin with its question. */
export function readExamples(views: string): Example[] {
  return readdirSync(folder)
    .filter(file => file.endsWith('.sql'))
    .sort()
    .map(file => exampleOf(file.slice(0, -'.sql'.length), views))
}

function exampleOf(name: string, views: string): Example {
  const sql = readFileSync(new URL(`${name}.sql`, folder), 'utf8').replaceAll(exampleViews, `${views}.`)
  const lines = sql.split('\n')
  const end = lines.findIndex(line => !line.startsWith('--'))
  const [question = '', ...notes] = lines.slice(0, end).map(line => line.slice('-- '.length).trim())
  if (!question.endsWith('?'))
    throw new Error(`contracts/tables/examples/${name}.sql: its first line is not a question`)
  return { name, question, notes: notes.join(' ').trim(), sql: sql.trimEnd() }
}

/**
 * Opens the query in the play page of the server at `sqlUrl`. Nothing runs until the reader says so. The page reads the query
 * from the fragment, as base64 of UTF-8, so it is sent to no server.
 */
export function playLink(sqlUrl: string, sql: string): string {
  const url = new URL(sqlUrl)
  url.pathname = '/play'
  url.hash = Buffer.from(sql).toString('base64')
  return url.href
}
