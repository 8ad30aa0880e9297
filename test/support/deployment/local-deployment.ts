/** The distributed form for one suite, on services of its own that it may pause and kill. */
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { needs, type Requirement } from '../runner/requirements.ts'
import { type Deployment, deploy } from './deployment.ts'
import {
  type LocalServiceOptions,
  type LocalServices,
  localServices,
  startLocalServices,
} from './local-services.ts'

export interface LocalDeploymentOptions extends LocalServiceOptions {
  /** Of every process and command. */
  settings?: Readonly<Record<string, string>>
  /** What the suite needs besides. */
  also?: Requirement | (() => Promise<Requirement>)
  /** What the suite does before its tests. */
  prepare: (local: { services: LocalServices; deployment: Deployment }) => Promise<void>
  /** How long all of this may take, with downloads. */
  msMax?: number
}

/** Starts all for the suite, and stops it after it; or skips its tests with the reason. */
export function useLocalDeployment(options: LocalDeploymentOptions): void {
  let requirement: Requirement
  let services: LocalServices | undefined
  let deployment: Deployment | undefined

  beforeAll(async () => {
    const also = typeof options.also === 'function' ? await options.also() : options.also
    requirement = also && !also.isMet ? also : await localServices(options)
    if (!requirement.isMet) return
    services = await startLocalServices(options)
    deployment = await deploy(services.addresses, options.settings)
    await options.prepare({ services, deployment })
  }, options.msMax ?? 300_000)

  beforeEach(context => needs(context, requirement))

  afterAll(async () => {
    await deployment?.stop()
    await services?.stop()
  })
}
