/**
 * Stand-ins for official images, for machines that reach package registries but no image registry: the same programs
 * from Debian, Maven Central and npm, on a Debian made by debootstrap. They honour of the official ones' ports, users and
 * environment what docker-compose.yml and the tests rely on. ClickHouse alone is another program: chDB behind the HTTP
 * door. The official registry keeps its schemas in Kafka; its stand-in keeps them in memory.
 */
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { apicurioFolder, apicurioRegistry } from '../apicurio.ts'
import { jarFolder, type KafkaVersion, kafkaRequirement } from '../kafka/jars.ts'
import type { Requirement } from '../requirements.ts'
import { docker, run } from './docker.ts'
import { isPresent, standInLabel } from './images.ts'

interface StandIn {
  /** What it is, for the label. */
  is: string
  /** Its folder under stand-ins/, with the Dockerfile. */
  folder: string
  /** What the Dockerfile copies: where it is, and its name in the build context. Fetches what is not there yet. */
  files(tag: string): Promise<readonly (readonly [path: string, name: string])[]>
}

const base = 'pledgeview-stand-in/debian:bookworm'
const root = new URL('../../..', import.meta.url).pathname
const buildMsMax = 900_000

const standIns: Readonly<Record<string, StandIn>> = {
  node: {
    is: "Debian with the Node of the npm package 'node', and this machine's npm",
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
    is: 'chDB behind the HTTP door of test/support, not a ClickHouse server',
    folder: 'clickhouse',
    files: async () =>
      ['package.json', 'package-lock.json', ...doorFiles].map(name => [join(root, name), name]),
  },
  redis: { is: "Debian's Redis", folder: 'redis', files: async () => [] },
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

async function registryFiles() {
  met(await apicurioRegistry())
  return [[apicurioFolder, 'registry'] as const]
}

const doorFiles = ['main', 'engine', 'request', 'response'].map(
  part => `test/support/clickhouse-door-${part}.ts`,
)

/**
 * Builds the stand-in for an image, gives it that image's name and resolves with what it is. Rejects with what the builder
 * said.
 */
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
    await buildImage(image, context, ['--label', `${standInLabel}=${standIn.is}`])
  } finally {
    rmSync(context, { recursive: true, force: true })
  }
  return standIn.is
}

/** Builds an image. It shares the machine's network: package registries may be reachable from there only. */
export async function buildImage(
  image: string,
  context: string,
  options: readonly string[] = [],
): Promise<void> {
  await docker(['build', '--network', 'host', '--tag', image, ...options, context], { msMax: buildMsMax })
}

/** The Debian that stand-ins stand on. Made once; it knows the authorities that this machine knows. */
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
