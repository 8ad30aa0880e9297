#!/usr/bin/env node
/**
 * Says whether a copy of the public campaigns is right, and which campaigns are wrong. It changes nothing.
 * It is JavaScript, because it runs from the package as it is.
 */
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { createClient } from './dist/api/client.js'

const usage = `Usage: npx --no @pledgeview/client verify URL [FILE] [--as-of WATERMARK] [--json]

Compares a copy with the API at URL (it ends in /api/v1): FILE, or standard input, has a JSON object with id and
updated_at on each line. Key and secret are read from PLEDGEVIEW_KEY and PLEDGEVIEW_SECRET.
--as-of: the X-Data-As-Of of the copy's last poll. Then campaigns that changed later do not count as wrong.
A right copy takes one request. Of a wrong one all campaigns are read, which takes more than a minute; also of a right one, if
campaigns change all the time.
Exit code: 0 right, 1 wrong, 2 it could not be compared.
`
const shownMax = 20

try {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { 'as-of': { type: 'string' }, json: { type: 'boolean' }, help: { type: 'boolean' } },
  })
  const [command, baseUrl, file = '-', ...rest] = positionals
  if (values.help) process.stdout.write(usage)
  else if (command !== 'verify' || baseUrl === undefined || rest.length > 0) fail(usage)
  else process.exitCode = await verify(baseUrl, file, values)
} catch (error) {
  // Here it is not stored, but given.
  fail(`${error.message.replace(/the stored watermark|the store$/g, '--as-of')}\n`)
}

async function verify(baseUrl, file, { 'as-of': asOf = null, json: isJson = false }) {
  const { PLEDGEVIEW_KEY: key = '', PLEDGEVIEW_SECRET: secret = '' } = process.env
  if (key === '' || secret === '') throw new Error('PLEDGEVIEW_KEY and PLEDGEVIEW_SECRET must be set')
  const client = createClient({ baseUrl, key, secret })
  const copy = await copyOf(file)
  const changed = new Set()
  if (process.stderr.isTTY)
    process.stderr.write('Comparing. If the copy is not right, this takes more than a minute.\n')
  const verdict = await client.verify({
    held: () => copy.values(),
    apply(change) {
      changed.add(change.type === 'upsert' ? change.project.id : change.id)
      if (change.type === 'upsert') copy.set(change.project.id, change.project)
      else copy.delete(change.id)
    },
    store: { load: () => asOf, save() {} },
  })
  if (isJson) process.stdout.write(`${JSON.stringify(verdict)}\n`)
  else {
    const { lacking, leftOver, stale } = verdict
    if (verdict.wasEqual) process.stdout.write(`equal as of ${verdict.asOf}: ${copy.size} campaigns\n`)
    tell('lacks', lacking)
    tell('has, but they are not public:', leftOver)
    tell('has with another updated_at', stale)
    const told = new Set([...lacking, ...leftOver, ...stale])
    const later = [...changed].filter(id => !told.has(id)).length
    if (!verdict.wasEqual && later > 0)
      process.stdout.write(`${later} other campaigns changed later, so nothing is said of them\n`)
  }
  return verdict.wasEqual ? 0 : 1
}

function tell(what, ids) {
  if (ids.length === 0) return
  const more = ids.length > shownMax ? ` and ${ids.length - shownMax} more (--json shows all)` : ''
  process.stdout.write(`The copy ${what} ${ids.slice(0, shownMax).join(', ')}${more}\n`)
}

async function copyOf(file) {
  const copy = new Map()
  let number = 0
  for await (const line of createInterface({
    input: file === '-' ? process.stdin : createReadStream(file),
  })) {
    number++
    if (line.trim() === '') continue
    copy.set(...entryOf(line, number))
  }
  return copy
}

function entryOf(line, number) {
  let row
  try {
    row = JSON.parse(line)
  } catch {
    row = undefined
  }
  const { id, updated_at } = row ?? {}
  if (typeof id === 'string' && typeof updated_at === 'string') return [id, { id, updated_at }]
  throw new Error(`line ${number} of the copy is not a JSON object with id and updated_at`)
}

function fail(text) {
  process.stderr.write(text)
  process.exitCode = 2
}
