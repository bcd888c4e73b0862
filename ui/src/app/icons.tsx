import type { ReactNode } from 'react';

/** The few pictures the app uses, drawn for it; each stands beside words or inside a labelled control. */
function icon(shape: ReactNode) {
  return function Icon({ size = 18 }: { size?: number }) {
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
        {shape}
      </svg>
    );
  };
}

export const MarkIcon = icon(
  <>
    <path d="M4 21V11a8 8 0 0 1 16 0v10M2.5 21h19M8.5 21v-9.5a3.5 3.5 0 0 1 7 0V21" />
    <circle cx="13.4" cy="15.6" r=".9" fill="currentColor" stroke="none" />
  </>,
);
export const KeyIcon = icon(
  <>
    <circle cx="8" cy="15.5" r="4.5" />
    <path d="m11.2 12.3 8.3-8.3M16 7.5l3 3M13 10.5l2 2" />
  </>,
);
export const PlugIcon = icon(<path d="M9 3v5M15 3v5M6 8h12v3a6 6 0 0 1-12 0zM12 17v4" />);
export const BookIcon = icon(<path d="M5 4.5A1.5 1.5 0 0 1 6.5 3H19v18H6.5A1.5 1.5 0 0 1 5 19.5zM5 18h14" />);
export const SunIcon = icon(
  <>
    <circle cx="12" cy="12" r="4" />
    <path d="M12 2v2M12 20v2M2 12h2M20 12h2M4.9 4.9l1.4 1.4M17.7 17.7l1.4 1.4M4.9 19.1l1.4-1.4M17.7 6.3l1.4-1.4" />
  </>,
);
export const PersonIcon = icon(
  <>
    <circle cx="12" cy="8" r="4" />
    <path d="M4 21a8 8 0 0 1 16 0" />
  </>,
);
export const SearchIcon = icon(
  <>
    <circle cx="11" cy="11" r="6.5" />
    <path d="m16 16 4.5 4.5" />
  </>,
);
export const PlusIcon = icon(<path d="M12 5v14M5 12h14" />);
export const CopyIcon = icon(
  <>
    <rect x="9" y="9" width="11" height="11" rx="2" />
    <path d="M5 15H4V5a1 1 0 0 1 1-1h10v1" />
  </>,
);
export const DownloadIcon = icon(<path d="M12 4v11M7.5 11l4.5 4.5 4.5-4.5M4.5 20h15" />);
export const HomeIcon = icon(<path d="M4 11 12 4l8 7v9h-5.5v-5h-5v5H4z" />);
export const BellIcon = icon(
  <>
    <path d="M6 16.5V11a6 6 0 0 1 12 0v5.5l1.5 1.5h-15z" />
    <path d="M10 20.5a2 2 0 0 0 4 0" />
  </>,
);
export const HelpIcon = icon(
  <>
    <circle cx="12" cy="12" r="9" />
    <path d="M9.4 9.3a2.7 2.7 0 1 1 3.7 2.9c-.7.3-1.1.8-1.1 1.6v.4M12 17.2v.1" />
  </>,
);
export const MenuIcon = icon(<path d="M4 7h16M4 12h16M4 17h16" />);
export const CheckIcon = icon(<path d="m5 12.5 4.5 4.5L19 7.5" />);
export const UploadIcon = icon(<path d="M12 16V5M7.5 9.5 12 5l4.5 4.5M4.5 20h15" />);
export const TerminalIcon = icon(
  <>
    <rect x="3" y="4.5" width="18" height="15" rx="2" />
    <path d="m7 9.5 3 2.5-3 2.5M12.5 15H17" />
  </>,
);
export const PeopleIcon = icon(
  <>
    <circle cx="9" cy="8.5" r="3.5" />
    <path d="M2.5 20a6.5 6.5 0 0 1 13 0M15.5 5.3a3.5 3.5 0 0 1 0 6.4M18 14.4a6.5 6.5 0 0 1 3.5 5.6" />
  </>,
);
export const ShieldIcon = icon(<path d="M12 3.5 19 6v6c0 4.3-2.9 7.2-7 8.5-4.1-1.3-7-4.2-7-8.5V6z" />);
export const GlobeIcon = icon(
  <>
    <circle cx="12" cy="12" r="9" />
    <path d="M3 12h18M12 3c2.6 2.6 3.9 5.6 3.9 9s-1.3 6.4-3.9 9c-2.6-2.6-3.9-5.6-3.9-9S9.4 5.6 12 3" />
  </>,
);
export const FolderIcon = icon(
  <path d="M3 18.5V6a1 1 0 0 1 1-1h5l2.5 2.5H20a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1z" />,
);
export const FileIcon = icon(<path d="M6 3h8l4 4v14H6zM14 3v4h4" />);
export const LockIcon = icon(
  <>
    <rect x="5" y="11" width="14" height="9.5" rx="2" />
    <path d="M8 11V8a4 4 0 0 1 8 0v3" />
  </>,
);
export const OpenIcon = icon(
  <path d="M14 4h6v6M20 4l-9 9M18 14v5a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V7a1 1 0 0 1 1-1h5" />,
);
export const CrossIcon = icon(<path d="m6 6 12 12M18 6 6 18" />);
export const GaugeIcon = icon(<path d="M4 19a9 9 0 1 1 16 0M12 14l4-5" />);
export const RobotIcon = icon(
  <>
    <rect x="4" y="8" width="16" height="11" rx="2.5" />
    <path d="M12 4v4M9 13v1.5M15 13v1.5M1.8 12.5v3M22.2 12.5v3" />
  </>,
);
export const CardIcon = icon(
  <>
    <rect x="3" y="5" width="18" height="14" rx="2" />
    <circle cx="8.5" cy="11" r="2" />
    <path d="M5.5 16a3 3 0 0 1 6 0M14.5 10h4M14.5 14h4" />
  </>,
);
export const SlidersIcon = icon(
  <>
    <path d="M4 7h9M18 7h2M4 17h2M11 17h9" />
    <circle cx="15.5" cy="7" r="2.3" />
    <circle cx="8.5" cy="17" r="2.3" />
  </>,
);
export const WindowIcon = icon(
  <>
    <rect x="3" y="4.5" width="18" height="15" rx="2" />
    <path d="M3 9h18M6 6.8v.1M8.5 6.8v.1" />
  </>,
);
export const TreeIcon = icon(
  <>
    <rect x="9" y="3" width="6" height="5" rx="1" />
    <rect x="3" y="16" width="6" height="5" rx="1" />
    <rect x="15" y="16" width="6" height="5" rx="1" />
    <path d="M12 8v4M6 16v-4h12v4" />
  </>,
);
export const BranchIcon = icon(
  <>
    <circle cx="7" cy="5.5" r="2.3" />
    <circle cx="7" cy="18.5" r="2.3" />
    <circle cx="17" cy="8.5" r="2.3" />
    <path d="M7 7.8v8.4M17 10.8c0 3.4-4.5 3-7.8 5.7" />
  </>,
);
export const ScrollIcon = icon(
  <path d="M7 3.5h10A1.5 1.5 0 0 1 18.5 5v14a1.5 1.5 0 0 1-1.5 1.5H7A1.5 1.5 0 0 1 5.5 19V5A1.5 1.5 0 0 1 7 3.5zM9 8h6M9 12h6M9 16h3" />,
);
export const MapIcon = icon(<path d="m3.5 6 5.5-2 6 2 5.5-2v14L15 20l-6-2-5.5 2zM9 4v14M15 6v14" />);
export const UpIcon = icon(<path d="M12 19V5M6 11l6-6 6 6" strokeWidth={2.4} />);
