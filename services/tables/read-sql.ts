import { readFileSync } from 'node:fs'

/** The text of `sql/<name>.sql` beside a module: `readSql('fold-keys', import.meta.url)`. */
export function readSql(name: string, moduleUrl: string): string {
  return readFileSync(new URL(`sql/${name}.sql`, moduleUrl), 'utf8')
}
