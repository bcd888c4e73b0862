import { buildTools } from './build-tools.ts';
import { changeTools } from './change-tools.ts';
import { readTools } from './read-tools.ts';
import type { Tool } from './tool.ts';

/** Every tool of the MCP endpoint, in the order of `tools/list`. */
export const tools: readonly Tool[] = [...readTools, ...buildTools, ...changeTools];
