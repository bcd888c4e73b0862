import {
  IconAdjustmentsHorizontal,
  IconArrowDown,
  IconArrowUp,
  IconBell,
  IconBook,
  IconBrowser,
  IconBug,
  IconChartBar,
  IconCheck,
  IconCopy,
  IconDatabase,
  IconDownload,
  IconExternalLink,
  IconFile,
  IconFileText,
  IconFolder,
  IconGauge,
  IconGitBranch,
  IconHelpCircle,
  IconHome,
  IconId,
  IconKey,
  IconLink,
  IconLock,
  IconMap,
  IconMenu2,
  IconMessage,
  IconPlug,
  IconPlugConnected,
  IconPlus,
  IconRobot,
  IconRefresh,
  IconSearch,
  IconShield,
  IconSitemap,
  IconSparkles,
  IconStack2,
  IconSun,
  IconTerminal2,
  IconUpload,
  IconUser,
  IconUsers,
  IconWorld,
  IconX,
  type TablerIcon,
} from '@tabler/icons-react';

/** The few pictures the app uses; each stands beside words or inside a labelled control. */
function icon(Shape: TablerIcon, stroke = 1.8) {
  return function Icon({ size = 18 }: { size?: number }) {
    return <Shape size={size} stroke={stroke} aria-hidden="true" />;
  };
}

export const BellIcon = icon(IconBell);
export const BookIcon = icon(IconBook);
export const BranchIcon = icon(IconGitBranch);
export const BugIcon = icon(IconBug);
export const CardIcon = icon(IconId);
export const ChartIcon = icon(IconChartBar);
export const ChatIcon = icon(IconMessage);
export const CheckIcon = icon(IconCheck);
export const CopyIcon = icon(IconCopy);
export const CrossIcon = icon(IconX);
export const DatabaseIcon = icon(IconDatabase);
export const DownIcon = icon(IconArrowDown, 2.4);
export const DownloadIcon = icon(IconDownload);
export const FileIcon = icon(IconFile);
export const FolderIcon = icon(IconFolder);
export const GaugeIcon = icon(IconGauge);
export const GlobeIcon = icon(IconWorld);
export const HelpIcon = icon(IconHelpCircle);
export const HomeIcon = icon(IconHome);
export const KeyIcon = icon(IconKey);
export const LinkIcon = icon(IconLink);
export const LockIcon = icon(IconLock);
export const MapIcon = icon(IconMap);
export const MenuIcon = icon(IconMenu2);
export const OpenIcon = icon(IconExternalLink);
export const PeopleIcon = icon(IconUsers);
export const PersonIcon = icon(IconUser);
export const PlugIcon = icon(IconPlug);
export const PlusIcon = icon(IconPlus);
export const RefreshIcon = icon(IconRefresh);
export const RobotIcon = icon(IconRobot);
export const ScrollIcon = icon(IconFileText);
export const SearchIcon = icon(IconSearch);
export const ShieldIcon = icon(IconShield);
export const SocketIcon = icon(IconPlugConnected);
export const SlidersIcon = icon(IconAdjustmentsHorizontal);
export const SparkIcon = icon(IconSparkles);
export const StackIcon = icon(IconStack2);
export const SunIcon = icon(IconSun);
export const TerminalIcon = icon(IconTerminal2);
export const TreeIcon = icon(IconSitemap);
export const UpIcon = icon(IconArrowUp, 2.4);
export const UploadIcon = icon(IconUpload);
export const WindowIcon = icon(IconBrowser);

/** Postern's own mark, as in mark.svg. */
export function MarkIcon({ size }: { size: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth={1.8}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d="M4 21V11a8 8 0 0 1 16 0v10M2.5 21h19M8.5 21v-9.5a3.5 3.5 0 0 1 7 0V21" />
      <circle cx="13.4" cy="15.6" r=".9" fill="currentColor" stroke="none" />
    </svg>
  );
}
