# frozen_string_literal: true

# Sidekiq as its package has it: a job leaves Redis when a worker takes it, so a crash loses what was running.
#
# What a job does goes by BENCH_KIND: nothing, burn a core for a millisecond, wait for ten, or fail the first two times
# if its number ends in 0. It counts when it is finished.
require 'sidekiq'
require_relative 'tally'

KIND = ENV.fetch('BENCH_KIND', 'idle')
BURN_S = 0.001
WAIT_S = 0.01

redis = { url: "redis://127.0.0.1:#{ENV.fetch('BENCH_PORT')}/0" }
Sidekiq.configure_client { |config| config.redis = redis }
Sidekiq.configure_server do |config|
  config.redis = redis
  Sidekiq.options[:poll_interval_average] = 1 # seconds between two looks for jobs to try again
  TALLY = Tally.new
end
Sidekiq.logger.level = Logger::FATAL # jobs that fail on purpose are no news

# Steps of work and not a time: what a job loses to others it has to make up for.
module Burning
  def self.burn(steps)
    state = left = steps
    while left.positive?
      state = (state * 1_103_515_245 + 12_345) & 0x7FFFFFFF
      left -= 1
    end
    state
  end

  # How many steps take that long on a core of their own: the best of several tries.
  def self.steps_in(seconds)
    steps = 5_000
    tries = Array.new(50) do
      start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      burn(steps)
      Process.clock_gettime(Process::CLOCK_MONOTONIC) - start
    end
    (steps * seconds / tries.min).round
  end
end
STEPS = KIND == 'burn' ? Burning.steps_in(BURN_S) : 0

class Job
  include Sidekiq::Worker
  sidekiq_options queue: 'bench', retry: KIND == 'fail' ? 2 : false
  sidekiq_retry_in { 1 } # the least it takes; it adds up to 18 seconds by chance

  def perform(body)
    case KIND
    when 'burn' then Burning.burn(STEPS)
    when 'wait' then sleep WAIT_S
    when 'fail' then raise 'it fails on purpose' if TALLY.fails?(body)
    end
    TALLY.count(body)
  end
end
