import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { root } from '../shell/root.ts';
import { keySearch } from '../keys/key-search.ts';
import { keyTab } from '../keys/detail/key-tab.ts';
import { prefillFrom } from '../keys/new/prefill.ts';
import { noticeSearch } from './notices/notice-search.ts';
import { refusalSearch } from './refusals/refusal-search.ts';

// A page's code is loaded when the user opens it. Its path and search parameters are known at once.
const keys = createRoute({
  getParentRoute: () => root,
  path: '/settings/keys',
  validateSearch: keySearch,
  component: lazyRouteComponent(() => import('../keys/keys-page.tsx'), 'KeysPage'),
});

const newKey = createRoute({
  getParentRoute: () => root,
  path: '/settings/keys/new',
  validateSearch: prefillFrom,
  component: lazyRouteComponent(() => import('../keys/new/new-key-page.tsx'), 'NewKeyPage'),
});

const key = createRoute({
  getParentRoute: () => root,
  path: '/settings/keys/$id',
  validateSearch: keyTab,
  component: lazyRouteComponent(() => import('../keys/detail/key-page.tsx'), 'KeyPage'),
});

const narrow = createRoute({
  getParentRoute: () => root,
  path: '/settings/keys/$id/narrow',
  component: lazyRouteComponent(() => import('../keys/narrow/narrow-page.tsx'), 'NarrowPage'),
});

const replace = createRoute({
  getParentRoute: () => root,
  path: '/settings/keys/$id/replace',
  component: lazyRouteComponent(() => import('../keys/replace/replace-page.tsx'), 'ReplacePage'),
});

const clients = createRoute({
  getParentRoute: () => root,
  path: '/settings/clients',
  component: lazyRouteComponent(() => import('./clients/clients-page.tsx'), 'ClientsPage'),
});

const pageOf = (raw: Record<string, unknown>): { page?: number } => {
  const page = Number(raw['page']);
  return Number.isInteger(page) && page > 1 ? { page } : {};
};

const agents = createRoute({
  getParentRoute: () => root,
  path: '/settings/agents',
  validateSearch: pageOf,
  component: lazyRouteComponent(() => import('./agents/agents-page.tsx'), 'AgentsPage'),
});

const agentSession = createRoute({
  getParentRoute: () => root,
  path: '/settings/agents/sessions/$id',
  validateSearch: pageOf,
  component: lazyRouteComponent(() => import('./agents/session-page.tsx'), 'SessionPage'),
});

const approval = createRoute({
  getParentRoute: () => root,
  path: '/settings/agents/approvals/$id',
  component: lazyRouteComponent(() => import('./agents/approval-page.tsx'), 'ApprovalPage'),
});

const connections = createRoute({
  getParentRoute: () => root,
  path: '/settings/connections',
  validateSearch: (raw: Record<string, unknown>): { problem?: string } =>
    typeof raw['problem'] === 'string' ? { problem: raw['problem'] } : {},
  component: lazyRouteComponent(() => import('./connections/connections-page.tsx'), 'ConnectionsPage'),
});

const commandLine = createRoute({
  getParentRoute: () => root,
  path: '/settings/command-line',
  component: lazyRouteComponent(() => import('./command-line/command-line-page.tsx'), 'CommandLinePage'),
});

const notices = createRoute({
  getParentRoute: () => root,
  path: '/settings/notices',
  validateSearch: noticeSearch,
  component: lazyRouteComponent(() => import('./notices/notices-page.tsx'), 'NoticesPage'),
});

const refusals = createRoute({
  getParentRoute: () => root,
  path: '/settings/refusals',
  validateSearch: refusalSearch,
  component: lazyRouteComponent(() => import('./refusals/refusals-page.tsx'), 'RefusalsPage'),
});

const password = createRoute({
  getParentRoute: () => root,
  path: '/settings/password',
  component: lazyRouteComponent(() => import('./password/password-page.tsx'), 'PasswordPage'),
});

const sessions = createRoute({
  getParentRoute: () => root,
  path: '/settings/sessions',
  component: lazyRouteComponent(() => import('./sessions/sessions-page.tsx'), 'SessionsPage'),
});

const passkeys = createRoute({
  getParentRoute: () => root,
  path: '/settings/passkeys',
  component: lazyRouteComponent(() => import('./passkeys/passkeys-page.tsx'), 'PasskeysPage'),
});

export const settingsRoutes = [
  keys,
  newKey,
  key,
  narrow,
  replace,
  clients,
  agents,
  agentSession,
  approval,
  connections,
  commandLine,
  notices,
  refusals,
  password,
  sessions,
  passkeys,
] as const;
