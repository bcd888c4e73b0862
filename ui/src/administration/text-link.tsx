import { Anchor, type AnchorProps } from '@mantine/core';
import { createLink } from '@tanstack/react-router';
import type { AnchorHTMLAttributes } from 'react';

type TextProps = Omit<AnchorProps, 'style'> &
  Omit<AnchorHTMLAttributes<HTMLAnchorElement>, 'color' | 'style'> & {
    ref?: React.Ref<HTMLAnchorElement>;
  };

/** A link to another page of the app, with what its address says checked. */
export const TextLink = createLink((props: TextProps) => <Anchor {...props} />);
