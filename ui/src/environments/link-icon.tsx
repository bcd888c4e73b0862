import type { Schemas } from '../api/contract.ts';
import {
  BookIcon,
  BranchIcon,
  BugIcon,
  ChartIcon,
  ChatIcon,
  DatabaseIcon,
  FileIcon,
  GaugeIcon,
  LinkIcon,
  ShieldIcon,
  TerminalIcon,
  WindowIcon,
} from '../shell/icons.tsx';

export type LinkIconName = Schemas['MetadataLink']['icon'];

export const linkPictures: Readonly<Record<LinkIconName, typeof LinkIcon>> = {
  book: BookIcon,
  branch: BranchIcon,
  bug: BugIcon,
  chart: ChartIcon,
  chat: ChatIcon,
  database: DatabaseIcon,
  file: FileIcon,
  gauge: GaugeIcon,
  link: LinkIcon,
  shield: ShieldIcon,
  terminal: TerminalIcon,
  window: WindowIcon,
};

export function isLinkIconName(name: string): name is LinkIconName {
  return Object.hasOwn(linkPictures, name);
}
