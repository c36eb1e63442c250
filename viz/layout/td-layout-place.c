/* Third step of a layout: rectangles on screen.
 *
 * SPDX-License-Identifier: MIT */
#include "layout/td-layout-private.h"

#define MIN_LANE 190
#define MIN_BACKWARD 284 /* room for one more beside a single node, when the graph changes */

static TdRect
rect_at (const TdLayoutBuild *b, double along, double across, double length, double breadth)
{
  return b->tb ? (TdRect){ across, along, breadth, length }
               : (TdRect){ along, across, length, breadth };
}

static void
place_node (const TdLayoutBuild *b, TdLayout *layout, gint node, double along, double across)
{
  double x = b->tb ? across : along, y = b->tb ? along : across;

  layout->nodes[node] = (TdRect){ x - b->width[node] / 2, y - b->height[node] / 2,
                                  b->width[node], b->height[node] };
}

/* Stubs stand one after the other beside their user: left of it, or above it. */
static void
place_stubs (const TdLayoutBuild *b, TdLayout *layout, gint user)
{
  const TdRect *u = &layout->nodes[user];
  gint32 n = b->stub_first[user + 1] - b->stub_first[user];
  const gint32 *stubs = b->stubs + b->stub_first[user];
  double step = (b->tb ? TD_STUB_HEIGHT : TD_STUB_WIDTH) + 2;

  for (gint32 i = 0; i < n; i++)
    {
      double along = (i - (n - 1) / 2.0) * step;

      if (b->tb)
        layout->nodes[stubs[i]] = (TdRect){ u->x - b->stub_gap - TD_STUB_WIDTH,
                                            u->y + u->height / 2 + along - TD_STUB_HEIGHT / 2,
                                            TD_STUB_WIDTH, TD_STUB_HEIGHT };
      else
        layout->nodes[stubs[i]]
            = (TdRect){ u->x + u->width / 2 + along - TD_STUB_WIDTH / 2,
                        u->y - b->stub_gap - TD_STUB_HEIGHT, TD_STUB_WIDTH, TD_STUB_HEIGHT };
    }
}

static void
place_lanes (TdLayoutBuild *b, TdLayout *layout)
{
  TdBox *root = &b->boxes[0];
  double header_along = b->tb ? TD_LANE_HEADER : TD_LANE_PAD;
  double header_across = b->tb ? TD_LANE_PAD : TD_LANE_HEADER;
  double length = header_along + root->length + TD_LANE_PAD;
  double at = 0;
  gint before = -1;

  root->along = header_along;
  for (guint lane = 0; lane < TD_N_LANES; lane++)
    {
      double breadth;

      if (!root->in_lane[lane])
        continue;
      if (before >= 0)
        at += before == TD_LANE_FORWARD && lane == TD_LANE_BACKWARD ? TD_SAVED_GAP
                                                                    : TD_LANE_GAP;
      breadth = header_across + root->reach[lane].left + root->reach[lane].right + TD_LANE_PAD;
      root->across[lane] = at + header_across + root->reach[lane].left;
      if (b->tb && breadth < MIN_LANE)
        {
          root->across[lane] += (MIN_LANE - breadth) / 2;
          breadth = MIN_LANE;
        }
      if (b->tb && lane == TD_LANE_BACKWARD)
        breadth = MAX (breadth, MIN_BACKWARD);
      layout->lanes[lane] = rect_at (b, 0, at, length, breadth);
      at += breadth;
      before = (gint)lane;
    }
  layout->bounds = rect_at (b, 0, 0, length, at);
}

static void
place_boxes (TdLayoutBuild *b, TdLayout *layout)
{
  for (guint i = 1; i < b->n_boxes; i++)
    {
      TdBox *box = &b->boxes[i];
      const TdBox *parent = &b->boxes[box->parent];
      const TdUnit *unit = &b->units[box->unit];
      double start = parent->along + unit->along;

      box->along = start + td__layout_pad_along (b);
      for (guint lane = 0; lane < TD_N_LANES; lane++)
        {
          double shift = lane == TD_LANE_UPDATE ? box->across[lane] : unit->across[lane];
          const TdReach *reach = &box->reach[lane];

          if (!box->in_lane[lane])
            continue;
          box->across[lane] = parent->across[lane] + shift;
          layout->groups[i][lane]
              = rect_at (b, start, box->across[lane] - reach->body_left, unit->length,
                         reach->body_left + reach->body_right);
        }
    }
}

void
td__layout_place (TdLayoutBuild *b, TdLayout *layout)
{
  place_lanes (b, layout);
  for (guint lane = 0; lane < TD_N_LANES; lane++)
    layout->groups[0][lane] = layout->lanes[lane];
  place_boxes (b, layout);
  for (guint u = 0; u < b->n_units; u++)
    {
      const TdUnit *unit = &b->units[u];
      const TdBox *box = &b->boxes[unit->box];
      double along = box->along + unit->along;

      if (unit->node < 0)
        continue;
      if (unit->in_lane[TD_LANE_FORWARD])
        place_node (b, layout, unit->node, along,
                    box->across[TD_LANE_FORWARD] + unit->across[TD_LANE_FORWARD]);
      for (gint32 i = 0; i < unit->n_twins; i++)
        {
          gint32 twin = b->twins[unit->first_twin + i];

          place_node (b, layout, twin, along + b->cell_along[twin],
                      box->across[TD_LANE_BACKWARD] + unit->across[TD_LANE_BACKWARD]
                          + b->cell_across[twin]);
        }
    }
  for (guint i = 0; i < b->n_boxes; i++)
    for (gint32 k = 0; k < b->boxes[i].n_updates; k++)
      {
        gint32 node = b->updates[b->boxes[i].first_update + k];

        place_node (b, layout, node, b->boxes[i].along + b->cell_along[node],
                    b->boxes[i].across[TD_LANE_UPDATE]);
      }
  for (guint i = 0; i < b->view->n_nodes; i++)
    if (b->view->nodes[i].lane == TD_LANE_FORWARD && b->view->nodes[i].user < 0
        && b->stub_first[i + 1] > b->stub_first[i])
      place_stubs (b, layout, (gint)i);
}
