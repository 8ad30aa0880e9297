/** A Node 20, which many consumers have: the one on the path, otherwise one from npm. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { Requirement } from '../support/runner/requirements.ts'
import { npmPackages } from './programs.ts'

const version = '20.20.2'

/** `program`: its path, only if the requirement is met. */
export async function node20(): Promise<{ requirement: Requirement; program: string }> {
  const onPath = (process.env.PATH ?? '').split(delimiter).map(folder => join(folder, 'node'))
  const found = onPath.find(isNode20)
  if (found !== undefined) return { requirement: { isMet: true, reason: '' }, program: found }
  const name = `node-${process.platform}-${process.arch}`
  const { folder, requirement } = npmPackages('Node', [`${name}@${version}`])
  return {
    requirement: await requirement(),
    program: join(folder, 'node_modules', name, 'bin/node'),
  }
}

function isNode20(program: string): boolean {
  if (!existsSync(program)) return false
  return /^v20\./.test(spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout ?? '')
}
