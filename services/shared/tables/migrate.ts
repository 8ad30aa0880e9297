/** Brings the tables up to date: runs the numbered SQL files of `contracts/tables` that have not run yet. */
import { readdirSync, readFileSync } from 'node:fs'
import type { Databases, Tables } from './port.ts'

interface Migration {
  number: number
  name: string
  statements: string[]
}

const directory = new URL('../../../contracts/tables/', import.meta.url)

/**
 * Applies what is missing, in order, and returns the names of what it applied.
 * A file's statements can all run again, so a migration that was cut off is repeated whole.
 */
export async function migrate(tables: Tables, databases: Databases): Promise<string[]> {
  await tables.run({
    query: `CREATE DATABASE IF NOT EXISTS ${databases.model}`,
  })
  await tables.run({
    query: `CREATE DATABASE IF NOT EXISTS ${databases.views}`,
  })
  const log = `${databases.model}.migrations`
  await tables.run({
    query: `CREATE TABLE IF NOT EXISTS ${log} (number UInt32, name String, applied_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC'))
            ENGINE = MergeTree ORDER BY number SETTINGS fsync_after_insert = 1, fsync_part_directory = 1`,
  })
  const rows = await tables.rows<{ number: number }>({
    query: `SELECT DISTINCT number FROM ${log}`,
  })
  const done = new Set(rows.map(row => row.number))
  const applied: string[] = []
  for (const migration of readMigrations(databases)) {
    if (done.has(migration.number)) continue
    for (const query of migration.statements) await tables.run({ query })
    await tables.insert({
      table: log,
      columns: ['number', 'name'],
      format: 'JSONCompactEachRow',
      body: JSON.stringify([migration.number, migration.name]),
    })
    applied.push(migration.name)
  }
  return applied
}

/** The migrations in order, with the database names filled in. */
export function readMigrations(databases: Databases): Migration[] {
  return readdirSync(directory)
    .filter(name => /^\d{4}-.*\.sql$/.test(name))
    .sort()
    .map(name => ({
      number: Number(name.slice(0, 4)),
      name,
      statements: splitStatements(nameDatabases(readFileSync(new URL(name, directory), 'utf8'), databases)),
    }))
}

/** Fills `${model}` and `${views}` in SQL text. */
export function nameDatabases(sql: string, databases: Databases): string {
  return sql.replaceAll('${model}', databases.model).replaceAll('${views}', databases.views)
}

// A statement ends with a semicolon at the end of a line; the files keep to that.
function splitStatements(sql: string): string[] {
  return sql
    .split(/;[ \t]*$/m)
    .map(statement => statement.replace(/^\s*--.*$/gm, '').trim())
    .filter(statement => statement !== '')
}
