import { Alert, Badge, Button, Combobox, createTheme, Modal, TextInput, Tooltip } from '@mantine/core';

/** Behaviour that all components share. Colours and sizes are in theme.css: the policy allows no style from script. */
export const theme = createTheme({
  respectReducedMotion: true,
  cursorType: 'pointer',
  components: {
    Alert: Alert.extend({ defaultProps: { variant: 'light', radius: 'md' } }),
    Badge: Badge.extend({ defaultProps: { variant: 'light', tt: 'none', fw: 600 } }),
    Button: Button.extend({ defaultProps: { radius: 'md' } }),
    // Options exist while they are shown only: the audit filters alone have sixty.
    Combobox: Combobox.extend({ defaultProps: { keepMounted: false, transitionProps: { duration: 0 } } }),
    // Its header is no banner of the page, which a <header> outside of <main> would be.
    // Its scroll lock writes a <style> element; base.css keeps the page still while a dialog is open.
    Modal: Modal.extend({
      defaultProps: {
        lockScroll: false,
        centered: true,
        closeButtonProps: { 'aria-label': 'Close' },
        attributes: { header: { role: 'presentation' } },
        radius: 'lg',
        transitionProps: { duration: 0 },
      },
    }),
    TextInput: TextInput.extend({ defaultProps: { radius: 'md' } }),
    Tooltip: Tooltip.extend({
      defaultProps: { withArrow: true, events: { hover: true, focus: true, touch: true } },
    }),
  },
});
