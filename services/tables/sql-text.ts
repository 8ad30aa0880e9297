/** SQL text that leaves names and parts open, in files beside the modules that run it. */
import { readFileSync } from 'node:fs'
import type { Databases } from './port.ts'

/** The text of `sql/<name>.sql` beside a module: `readSql('fold-keys', import.meta.url)`. */
export function readSql(name: string, moduleUrl: string): string {
  return readFileSync(new URL(`sql/${name}.sql`, moduleUrl), 'utf8')
}

/** Fills in what SQL text leaves open, such as `${scope}`. What is not among the parts stays open. */
export function fillIn(sql: string, parts: Readonly<Record<string, string>>): string {
  return sql.replace(/\$\{(\w+)\}/g, (open, name) => parts[name] ?? open)
}

/** Fills `${base}`, `${ledger}`, `${read}` and `${views}` in SQL text. */
export function nameDatabases(sql: string, { base, ledger, read, views }: Databases): string {
  return fillIn(sql, { base, ledger, read, views })
}
