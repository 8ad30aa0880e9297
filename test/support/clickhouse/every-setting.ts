/** Every setting that a ClickHouse server knows, at values that are not its default. */
import { askClickHouse, type ClickHouseAddress } from './clickhouse.ts'

/** A setting and its value, as after SETTINGS. */
export type Assignment = `${string} = ${string}`

interface Setting {
  name: string
  type: string
  value: string
}

const most = '18446744073709551615'

/** The first value of each setting, then the second one of each that has more, and so on: neighbours are different settings. */
export async function everySetting(
  address: ClickHouseAddress,
): Promise<{ settings: number; assignments: readonly Assignment[] }> {
  const known =
    "SELECT name, type, value FROM system.settings WHERE alias_for = '' ORDER BY cityHash64(name) FORMAT JSON"
  const settings = (JSON.parse(await askClickHouse(address, known)) as { data: Setting[] }).data
  const rounds: Assignment[][] = []
  for (const setting of settings) {
    const values = (await valuesOf(setting, address)).filter(value => value !== `'${setting.value}'`)
    values.forEach((value, round) => {
      rounds[round] ??= []
      rounds[round].push(`${setting.name} = ${value}`)
    })
  }
  return { settings: settings.length, assignments: rounds.flat() }
}

async function valuesOf({ name, type, value }: Setting, address: ClickHouseAddress): Promise<string[]> {
  if (type === 'Bool') return [value === '1' || value === 'true' ? '0' : '1']
  // At a byte per second, no answer comes from another shard.
  if (/bandwidth/.test(name)) return [most]
  if (/Int|Seconds|MaxThreads|Float|Double|BoolAuto/.test(type)) return ['0', '1', most]
  if (type === 'String') return ["''", "'a'", "'0'", "'1'", "'campaign_id'", "'slug_index'"]
  if (type === 'Map') return ["{'a':'b'}", "{'campaigns':'0'}", "{'pledgeview_read_1.campaigns':'0'}"]
  if (type === 'Char') return ["'a'"]
  // The message names the values that there are.
  const wrong = 'no such value'
  const refusal = await askClickHouse(address, `SELECT 1 SETTINGS ${name} = '${wrong}'`).catch(String)
  return [...refusal.matchAll(/'(\w[^']*)'/g)]
    .map(([literal]) => literal)
    .filter(literal => literal !== `'${wrong}'`)
}

/**
 * Asks with so many settings at once, and with fewer if the answer is not the expected one, until it is clear with which of them the
 * answer is another one, and with which there is none. A refusal that names one of them is a reason to ask with that one alone. `late`: an
 * answer that was not waited for any longer.
 */
export async function findDifferences(
  assignments: readonly Assignment[],
  size: number,
  expected: string,
  ask: (settings: string) => Promise<{ answer?: string; refusal?: string; late?: boolean }>,
) {
  const found = {
    different: [] as { assignment: Assignment; answer: string }[],
    answered: [] as Assignment[],
    refused: [] as Assignment[],
    /** Of the refused ones. */
    late: [] as Assignment[],
  }
  const groups = inGroups(assignments, size)
  async function work(): Promise<void> {
    for (let group = groups.shift(); group; group = groups.shift()) {
      const { answer, refusal = '', late = false } = await ask(group.join(', '))
      const [assignment] = group
      if (answer === expected) found.answered.push(...group)
      else if (group.length > 1) groups.unshift(...divided(group, refusal, late ? 10 : 2))
      else if (answer === undefined) {
        found.refused.push(...group)
        if (late) found.late.push(...group)
      } else if (assignment !== undefined) found.different.push({ assignment, answer })
    }
  }
  await Promise.all([work(), work()])
  return found
}

/** The one that the refusal names, and the others; so many parts if it names none of them, or several. */
function divided(group: Assignment[], refusal: string, parts: number): Assignment[][] {
  const words = new Set(refusal.match(/\w+/g))
  const named = group.filter(assignment => words.has(nameOf(assignment)))
  if (named.length !== 1) return inGroups(group, Math.ceil(group.length / parts))
  return [named, group.filter(assignment => !named.includes(assignment))]
}

/** In a group, no setting has two values: only the last one would count. */
function inGroups(assignments: readonly Assignment[], size: number): Assignment[][] {
  const groups: Map<string, Assignment>[] = []
  for (const assignment of assignments) {
    const name = nameOf(assignment)
    const last = groups.at(-1)
    if (last && last.size < size && !last.has(name)) last.set(name, assignment)
    else groups.push(new Map([[name, assignment]]))
  }
  return groups.map(group => [...group.values()])
}

export function nameOf(assignment: Assignment): string {
  return assignment.replace(/ = .*/s, '')
}
