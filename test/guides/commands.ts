/** What guides mention of the program, found in their text: commands with their flags, settings, npm scripts. */
import { fencesOf } from './blocks.ts'

export interface NamedCommand {
  /** `rebuild`, or `rejects list`. */
  command: string
  flags: string[]
}

/** The commands that have verbs. */
const withVerb = new Set(['events', 'keys', 'rejects', 'rebuild'])
const called =
  /(?:^|(?<!\bfrom)[\s(])(?:npm run --silent pledgeview --|docker compose run(?: -\S+)* pledgeview|pledgeview) (.*)$/
const startedBy = /^npm start --(.*)$/

/** The commands in blocks of lines and in code within sentences. Each use is separate. */
export function commandsIn(markdown: string): NamedCommand[] {
  return codeOf(markdown).flatMap(code => {
    const started = startedBy.exec(code)
    const words = (started ? `start${started[1]}` : (called.exec(code)?.[1] ?? ''))
      .replace(/[|&>)].*$/, '')
      .split(/[\s']+/)
      .filter(word => word !== '')
    const [name, verb = ''] = words
    if (name === undefined || !/^[a-z]+$/.test(name)) return []
    const command = withVerb.has(name) && /^[a-z]+$/.test(verb) ? `${name} ${verb}` : name
    return [{ command, flags: words.flatMap(word => /^--[a-z][a-z-]*/.exec(word) ?? []) }]
  })
}

/** Flags that sentences name without their command. */
export function looseFlagsIn(markdown: string): string[] {
  return [...new Set(inlineCodeOf(markdown).flatMap(code => /^--[a-z][a-z-]*/.exec(code) ?? []))]
}

/** Settings by their full names, without the settings of the tests. */
export function settingsIn(markdown: string): string[] {
  const found = markdown.match(/\bPLEDGEVIEW_[A-Z_]+[A-Z]\b/g) ?? []
  return [...new Set(found)].filter(name => !name.startsWith('PLEDGEVIEW_TEST_'))
}

// npm's own commands, which are no scripts of package.json.
const npmOwn = new Set(['ci', 'install', 'run'])

/** The scripts in `npm run check` and the like. */
export function npmScriptsIn(markdown: string): string[] {
  return codeOf(markdown).flatMap(code => {
    const [, script] = /^npm (?:run (?:--silent )?)?([a-z:]+)/.exec(code) ?? []
    return script === undefined || npmOwn.has(script) ? [] : [script]
  })
}

function codeOf(markdown: string): string[] {
  const fences = fencesOf(markdown).filter(({ language }) => language === 'sh')
  return [...fences.flatMap(({ text }) => text.split('\n')), ...inlineCodeOf(markdown)]
}

function inlineCodeOf(markdown: string): string[] {
  const prose = markdown.replace(/^```[\s\S]*?^```$/gm, '')
  return [...prose.matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code)
}
