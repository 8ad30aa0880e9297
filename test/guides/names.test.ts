/** Checks that everything the guides name exists: commands, flags, settings, scripts, files. It runs only `--help`. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { mirroringSteps } from '../../contracts/api/mirroring.ts'
import { murmur2, partitionOf } from '../../services/log/kafka/record.ts'
import { wantedTopics } from '../../services/log/kafka/topics.ts'
import { readConfig, settingNames } from '../../services/runtime/config.ts'
import { installedCompose } from '../compose/prerequisites.ts'
import { runHere } from '../support/deployment/run-here.ts'
import { run } from '../support/runner/programs.ts'
import { needs } from '../support/runner/requirements.ts'
import { blocksOf, fencesOf, guides, operatorGuides, readGuide, root } from './blocks.ts'
import { commandsIn, looseFlagsIn, npmScriptsIn, settingsIn } from './commands.ts'
import { brokenLinks, linksOf, markdownFiles } from './links.ts'

const wordsMax = 700
const topics = [
  '',
  'start',
  'events append',
  'keys issue',
  'rejects list',
  'rejects retry',
  'rebuild',
  'restored',
  'purge',
  'notify',
]

describe.each(guides)('%s', guide => {
  const markdown = readGuide(guide)

  test('names commands and flags that --help lists', async () => {
    for (const [command, flags] of flagsByCommand(markdown)) {
      const { code, stdout } = await helpOf(command)
      expect(code, command).toBe(0)
      for (const word of [command, ...flags]) expect(stdout, `${command} ${word}`).toContain(word)
    }
  })

  test('names flags in its sentences that some command has', async () => {
    const asked = await Promise.all(topics.map(helpOf))
    const all = asked.map(({ stdout }) => stdout).join('\n')
    for (const flag of looseFlagsIn(markdown)) expect(all).toContain(flag)
  })

  test('names settings that exist', () => {
    for (const name of settingsIn(markdown)) expect(settingNames).toContain(name)
  })

  test('names npm scripts that exist', () => {
    const { scripts } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'))
    for (const name of npmScriptsIn(markdown)) expect(Object.keys(scripts)).toContain(name)
  })
})

describe('the compose lines, which are not run', () => {
  const lines = guides.flatMap(guide =>
    blocksOf(guide)
      .filter(({ how }) => how.kind === 'compose')
      .flatMap(({ text }) => text.trim().split('\n')),
  )
  const file = readFileSync(`${root}docker-compose.yml`, 'utf8')
  const sectionOf = (service: string): string =>
    new RegExp(`^  ${service}:\\n((?: {4}.*\\n|\\n)+)`, 'm').exec(file)?.[1] ?? ''

  test('scale services that have no port on the host, which only one container could have', () => {
    const scaled = lines.flatMap(line =>
      [...line.matchAll(/ --scale ([a-z-]+)=/g)].map(([, name = '']) => name),
    )
    expect(scaled).toEqual(expect.arrayContaining(['projector', 'query']))
    for (const service of [...scaled, 'portal']) {
      const section = sectionOf(service)
      expect(section, service).toContain(`command: [${service}]`)
      expect(section, service).not.toMatch(/^ {4}(ports|container_name):/m)
    }
  })

  test('name services that docker-compose.yml has', () => {
    expect(lines.length).toBeGreaterThan(3)
    for (const line of lines) {
      const [, service] = / run (?:-\S+ )*([a-z-]+)/.exec(line) ?? / --scale ([a-z-]+)=/.exec(line) ?? []
      if (service !== undefined) expect(file, line).toMatch(new RegExp(`^  ${service}:$`, 'm'))
    }
  })

  test('run commands in a service that has every setting that a command asks for', () => {
    const commands = readdirSync(`${root}services/commands`, { encoding: 'utf8', recursive: true }).filter(
      name => name.endsWith('.ts'),
    )
    const asked = commands.flatMap(name => {
      const text = readFileSync(`${root}services/commands/${name}`, 'utf8')
      return /\bsettings: \[(.*)\]/.exec(text)?.[1]?.match(/\w+/g) ?? []
    })
    expect(asked).toEqual(expect.arrayContaining(['PLEDGEVIEW_KEY_PEPPER', 'PLEDGEVIEW_PORTAL_KEY']))
    const given = `${file.slice(0, file.indexOf('\nservices:\n'))}${sectionOf('pledgeview')}`
    expect(asked.filter(name => !given.includes(` ${name}: \${${name}:`))).toEqual([])
  })

  test('have flags that compose has', async context => {
    const compose = await installedCompose()
    needs(context, {
      isMet: compose !== undefined,
      reason: 'neither docker compose nor docker-compose is installed',
    })
    const [program = '', ...first] = compose ?? []
    for (const line of lines) {
      const [, verb = '', rest = ''] = /^docker compose (\w+)(.*)$/.exec(line) ?? []
      const { stdout } = await run(program, [...first, verb, '--help'])
      const [own = ''] = rest.split(' pledgeview ')
      for (const flag of own.match(/--?[A-Za-z-]+/g) ?? []) expect(stdout, line).toContain(flag)
    }
  })

  test('name ports that docker-compose.yml publishes', () => {
    const guide = operatorGuides.map(readGuide).join('')
    const published = [...file.matchAll(/\$\{(HOST_PORT_\w+):-(\d+)\}:\d+["\n]/g)]
    expect(published.length).toBeGreaterThan(3)
    for (const [, variable = '', port = ''] of published) {
      expect(guide).toContain(`\`${variable}\``)
      expect(guide).toContain(port)
    }
  })
})

test('the partitions of contracts/events/README.md are those of our own producer', () => {
  const rows = [
    ...readGuide('contracts/events/README.md').matchAll(/^\| `(.+)` \| (-?\d+) \| (\d+) \| (\d+) \|$/gm),
  ]
  expect(rows.length).toBeGreaterThan(3)
  for (const [, key = '', hash, ofSix, ofTwelve] of rows) {
    const bytes = Buffer.from(key)
    expect([murmur2(bytes), partitionOf(bytes, 6), partitionOf(bytes, 12)], key).toEqual(
      [hash, ofSix, ofTwelve].map(Number),
    )
  }
})

test('the guide for consumers has the steps of a mirror that the API and the portal show', () => {
  const text = readGuide('contracts/api/README.md').replace(/\s+/g, ' ')
  for (const step of mirroringSteps) expect(text).toContain(step)
  // As the loop of the simulation does it (test/simulation/documented-loop.ts): otherwise the copy keeps what left during the first walk.
  expect(mirroringSteps.find(step => step.includes('/removals'))).toContain('without `since`')
})

test('the guide to backups has the configuration of the disk to which its statement writes', () => {
  const guide = readGuide('deploy/restore.md')
  const [, disk] = /^BACKUP .* TO Disk\('(\w+)'/m.exec(guide) ?? []
  const xml = fencesOf(guide).find(({ language }) => language === 'xml')?.text
  expect(xml).toContain(`<disks><${disk}>`)
  expect(xml).toContain(`<allowed_disk>${disk}</allowed_disk>`)
})

test('the guide to upgrades creates topics with the settings that migrate gives them', () => {
  const guide = readGuide('deploy/upgrade.md')
  for (const { configEntries } of wantedTopics({ topicPrefix: '' }, readConfig({})))
    for (const { name, value } of configEntries) expect(guide).toContain(`\`${name}=${value}\``)
})

test('the README has less than 700 words', () => {
  expect(readGuide('README.md').split(/\s+/).length).toBeLessThan(wordsMax)
})

describe('links between Markdown files', () => {
  test.each(markdownFiles())('of %s lead to files and headings that exist', file => {
    expect(brokenLinks(file)).toEqual([])
  })

  test('are found', () => expect(linksOf(readGuide('README.md')).length).toBeGreaterThan(9))
})

const helpOf = (command: string) => runHere([...command.split(' ').filter(Boolean), '--help'])

function flagsByCommand(markdown: string): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>()
  for (const { command, flags } of commandsIn(markdown)) {
    found.set(command, (found.get(command) ?? new Set()).union(new Set(flags)))
  }
  return found
}
