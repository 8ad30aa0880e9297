/**
 * Stand-ins for official images, for machines that reach package registries but no image registry: the same programs
 * from Debian, Maven Central and npm, on a Debian made by debootstrap. They support the ports, users and environment variables
 * that docker-compose.yml and the tests rely on. ClickHouse is its own server from the npm package chdb. The official registry
 * keeps its schemas in Kafka; its stand-in keeps them in memory.
 */
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { jarFolder, type KafkaVersion, kafkaRequirement } from '../kafka/jars.ts'
import { run } from '../runner/programs.ts'
import type { Requirement } from '../runner/requirements.ts'
import { apicurioFolder, apicurioRegistry } from '../servers/apicurio.ts'
import { docker } from './docker.ts'
import { imageOf, isPresent, standInLabel, standInOf } from './images.ts'

interface StandIn {
  /** A description, for the label. */
  is: string
  /** Its folder under stand-ins/, with the Dockerfile. */
  folder: string
  /** What the Dockerfile copies: its path, and its name in the build context. Downloads what is missing. */
  files(tag: string): Promise<readonly (readonly [path: string, name: string])[]>
}

/** The base image of the stand-ins. */
export const base = 'pledgeview-stand-in/debian:bookworm'
const root = fileURLToPath(new URL('../../..', import.meta.url))
const buildMsMax = 900_000

const standIns: Readonly<Record<string, StandIn>> = {
  node: {
    is: "Debian with the Node of this project's npm packages, and this machine's npm",
    folder: 'node',
    files: async () => [
      [process.execPath, 'node'],
      [await npmFolder(), 'npm'],
    ],
  },
  'apache/kafka': {
    is: 'Kafka from its jars on Maven Central',
    folder: 'kafka',
    async files(tag) {
      const version = tag as KafkaVersion
      met(await kafkaRequirement(version))
      return [[jarFolder(version), 'libs']]
    },
  },
  'clickhouse/clickhouse-server': {
    is: "ClickHouse's own server from the npm package chdb",
    folder: 'clickhouse',
    files: async () => clickHouseFiles.map(name => [join(root, name), name] as const),
  },
  redis: { is: "Debian's Redis", folder: 'redis', files: async () => [] },
  haproxy: { is: "Debian's HAProxy", folder: 'haproxy', files: async () => [] },
  'apicurio/apicurio-registry-kafkasql': {
    is: 'Apicurio Registry from Maven Central, in memory and not in Kafka',
    folder: 'registry',
    files: registryFiles,
  },
  'apicurio/apicurio-registry-mem': {
    is: 'Apicurio Registry from Maven Central',
    folder: 'registry',
    files: registryFiles,
  },
}

const clickHouseFiles = [
  'package.json',
  'package-lock.json',
  'contracts',
  'services',
  'test/support/containers/clickhouse-container.ts',
]

async function registryFiles() {
  met(await apicurioRegistry())
  return [[apicurioFolder, 'registry'] as const]
}

/** Builds the stand-in for an image, and resolves with its description. Rejects with the builder's output. */
export async function buildStandIn(image: string): Promise<string> {
  const [repository = '', tag = ''] = image.split(':')
  const standIn = standIns[repository]
  if (!standIn) throw new Error(`there is no stand-in for ${image}`)
  await ensureBase()
  const files = await standIn.files(tag)
  const context = mkdtempSync(join(tmpdir(), 'pledgeview-image-'))
  try {
    cpSync(new URL(`stand-ins/${standIn.folder}`, import.meta.url), context, { recursive: true })
    for (const [path, name] of files) {
      cpSync(path, join(context, name), { recursive: true, preserveTimestamps: true })
    }
    const label = ['--label', `${standInLabel}=${standIn.is}`]
    const from = standIn.folder === 'clickhouse' ? ['--build-arg', `NODE_IMAGE=${await nodeImage()}`] : []
    await buildImage(standInOf(image), context, [...label, ...from])
  } finally {
    rmSync(context, { recursive: true, force: true })
  }
  return standIn.is
}

/** The program's own image, from its Dockerfile, on the stand-in for Node if there is no official one. */
export async function buildProgram(name: string): Promise<void> {
  const file = join(root, 'deploy/Dockerfile')
  await buildImage(name, root, ['--file', file, '--build-arg', `NODE_IMAGE=${await nodeImage()}`])
}

/** The Node image that the engine has. */
async function nodeImage(): Promise<string> {
  const official = imageOf('node')
  return (await isPresent(official)) ? official : standInOf(official)
}

/** Builds an image on the machine's network, because package registries may be reachable from there only. */
async function buildImage(image: string, context: string, options: readonly string[] = []): Promise<void> {
  await docker(['build', '--network', 'host', '--tag', image, ...options, context], { msMax: buildMsMax })
}

/** The Debian base of the stand-ins. It is built once, and trusts the certificate authorities of this machine. */
async function ensureBase(): Promise<void> {
  if (await isPresent(base)) return
  const directory = mkdtempSync(join(tmpdir(), 'pledgeview-debian-'))
  try {
    const strap = ['--variant=minbase', '--include=ca-certificates,wget', 'bookworm', directory]
    const { code, stdout, stderr } = await run('debootstrap', strap, { msMax: buildMsMax })
    if (code !== 0) throw new Error(`debootstrap ended with ${code}:\n${`${stdout}${stderr}`.slice(-2_000)}`)
    const authorities = process.env.NODE_EXTRA_CA_CERTS
    const inImage = '/etc/ssl/certs/of-the-build-machine.pem'
    const knows = authorities !== undefined && existsSync(authorities)
    if (knows) cpSync(authorities, join(directory, inImage), { dereference: true })
    const changes = knows ? ['--change', `ENV NODE_EXTRA_CA_CERTS=${inImage}`] : []
    const archive = `${directory}.tar`
    try {
      met(await tar(directory, archive))
      await docker(['import', '--change', 'CMD ["bash"]', ...changes, archive, base], { msMax: buildMsMax })
    } finally {
      rmSync(archive, { force: true })
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

async function tar(directory: string, archive: string): Promise<Requirement> {
  const { code, stderr } = await run('tar', ['--create', '--file', archive, '--directory', directory, '.'])
  return { isMet: code === 0, reason: `tar ended with ${code}: ${stderr}` }
}

/** The folder of the machine's npm. */
async function npmFolder(): Promise<string> {
  const { code, stdout } = await run('sh', ['-c', 'realpath "$(command -v npm)"'])
  if (code !== 0) throw new Error('no npm is on the path')
  return dirname(dirname(stdout.trim()))
}

function met({ isMet, reason }: Requirement): void {
  if (!isMet) throw new Error(reason)
}
