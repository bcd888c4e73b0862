import { day } from '../src/core/clock.ts';
import type {
  Environment,
  EnvironmentService,
} from '../src/features/environments/environment/environment.ts';

type Own = Pick<Environment, 'id' | 'uuid' | 'creator' | 'label'> & Partial<Environment>;

/** A deployed Environment for members, whose lease ends a day after `now` (milliseconds), except for its own facts. */
export function environmentRow(now: number, own: Own): Environment {
  return {
    repositoryId: 'repo_none',
    repository: 'acme/website',
    branch: 'search',
    pinnedSha: null,
    sha: null,
    trigger: 'api',
    access: 'members',
    isAccessOpen: false,
    services: [],
    env: {},
    initEnv: {},
    ttlHours: null,
    deployEnabled: true,
    autoTrack: false,
    trackDefaultBranches: false,
    status: 'deployed',
    statusMessage: null,
    liveDeployId: null,
    createdAt: now,
    updatedAt: now,
    expiresAt: now + day,
    deletedAt: null,
    revision: 1,
    ...own,
  };
}

/** A process that is ready and has no address yet, except for its own facts. */
export function serviceRow(own: Partial<EnvironmentService> = {}): EnvironmentService {
  return {
    name: 'api',
    kind: 'process',
    status: 'ready',
    reason: null,
    isExposed: true,
    routes: {},
    spa: false,
    url: null,
    artifactId: null,
    address: null,
    ...own,
  };
}
